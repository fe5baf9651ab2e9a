// HostMessages: carries messages of kernels to ranks whose memory they do not reach: the process's progress thread
// takes requests out of a ring, makes the calls of MPI, which matches messages by sender, tag and order, and answers
// when they have ended (tasuki/kernel/impl/by_host.cuh).
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/ring.hpp"
#include "session/runtime.hpp"
#include "session/worker.hpp"

namespace tasuki {

class HostMessages final : public Worker::Task {
 public:
  /// So many messages of up to `room` bytes may be under way; a power of two. `abort` ends the kernels' waits; any
  /// thread may call it. Local; throws `Error` if there is no memory.
  HostMessages(Runtime& runtime, bool on_gpu, device::Word places, device::Word room, std::function<void()> abort);
  ~HostMessages() override;
  HostMessages(const HostMessages&) = delete;
  HostMessages& operator=(const HostMessages&) = delete;

  /// Takes a communicator of its own, which MPI keeps until it ends, because giving it back would be collective, too.
  /// Then messages can travel. Collective.
  void connect();

  device::ByHost device() const;  ///< What kernels get.
  std::string failure() const;    ///< What MPI has said, if it has failed: a whole message.

  bool serve() override;
  bool asked() const override { return false; }
  bool asked_silently() const override { return true; }

  /// Why this rank's process cannot carry messages; empty if it can.
  static std::string why_not(const Runtime& runtime);

 private:
  struct KernelMessage {
    HostRing::Asked asked;
    MPI_Request request = MPI_REQUEST_NULL;
    int peer() const { return static_cast<int>(asked.request.a >> 32); }
    int tag() const { return static_cast<int>(static_cast<unsigned>(asked.request.a)); }
    bool sends() const { return asked.request.what == device::detail::kIsend; }
    device::Word bytes() const { return asked.request.b; }
  };
  bool begin(const HostRing::Asked& asked);
  bool look(KernelMessage& message, bool& ended);
  void finish();
  bool fail(const KernelMessage& message, const char* call, int code);
  std::byte* staging_of(const KernelMessage& message) const {
    return staging_.get() + message.asked.request.place * room_;
  }

  Runtime& runtime_;
  const std::function<void()> abort_;
  const device::Word room_;
  HostRing ring_;
  std::shared_ptr<std::byte> staging_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int largest_tag_ = 0;
  std::vector<KernelMessage> messages_;  // under way
  std::string failure_;                  // written before `failed_`
  std::atomic<bool> failed_{false};
};

}  // namespace tasuki
