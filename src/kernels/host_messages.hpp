// HostMessages: carries messages of kernels to ranks whose memory they do not reach: the process's progress thread
// takes requests out of a ring, makes the calls of MPI, which matches messages by sender, tag and order, and answers
// when they have ended (tasuki/kernel/impl/by_host.cuh).
#pragma once

#include <mpi.h>

#include <array>
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
  /// So many messages may be under way, a power of two; each has `room` bytes of staging, and larger ones go in slices.
  /// `abort` ends the kernels' waits; any thread may call it. Local; throws `Error` if there is no memory.
  HostMessages(Runtime& runtime, bool on_gpu, device::Word places, device::Word room, std::function<void()> abort);
  ~HostMessages() override;
  HostMessages(const HostMessages&) = delete;
  HostMessages& operator=(const HostMessages&) = delete;

  /// Takes two communicators of its own, which MPI keeps until it ends, because giving them back would be collective,
  /// too: the second is for slices. Then messages can travel. Collective.
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
    device::Word all = 0;           // bytes, if it is known to travel in slices
    int number = 0;                 // by which the sender's slices are matched: their tag
    int came = 0;                   // the tag of what a receive has got
    int source = device::kAnyRank;  // the sender of what a receive from any rank has got
    device::Word slices = 0, begun = 0, ended = 0;
    std::array<MPI_Request, device::detail::kSliceSlots> slots = no_requests();
    int asked_peer() const { return static_cast<int>(asked.request.a >> 32); }
    int peer() const { return asked_peer() == device::kAnyRank ? source : asked_peer(); }
    int tag() const { return static_cast<int>(static_cast<unsigned>(asked.request.a)); }
    bool sends() const { return asked.request.what == device::detail::kIsend; }
    device::Word bytes() const { return asked.request.b; }
  };
  bool begin(const HostRing::Asked& asked);
  bool look(KernelMessage& message, bool& ended);
  bool has_come(KernelMessage& message, const MPI_Status& status);
  bool carry_on(KernelMessage& message, bool& ended);
  void finish();
  bool fail(const KernelMessage& message, const char* call, int code);
  std::byte* staging_of(const KernelMessage& message) const {
    return staging_.get() + message.asked.request.place * (room_ + device::detail::kHeader);
  }
  device::Word* header_of(const KernelMessage& message) const {
    return reinterpret_cast<device::Word*>(staging_of(message) + room_);
  }
  device::Word* counts_of(const KernelMessage& message) const {
    return counts_.get() + message.asked.request.place * device::detail::kCountWords;
  }
  void publish(const KernelMessage& message) const {
    device::detail::store_release(counts_of(message) + device::detail::kCountWords / 2, message.ended);
  }
  static std::array<MPI_Request, device::detail::kSliceSlots> no_requests() {
    std::array<MPI_Request, device::detail::kSliceSlots> all{};
    all.fill(MPI_REQUEST_NULL);
    return all;
  }

  Runtime& runtime_;
  const std::function<void()> abort_;
  const device::Word room_;
  HostRing ring_;
  std::shared_ptr<std::byte> staging_;
  std::shared_ptr<device::Word> counts_;
  std::shared_ptr<std::byte> sliced_;  // where kernels run: how many are open, then by place
  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Comm slices_ = MPI_COMM_NULL;
  int largest_tag_ = 0;
  int next_number_ = 0;
  std::vector<KernelMessage> messages_;  // under way
  std::string failure_;                  // written before `failed_`
  std::atomic<bool> failed_{false};
};

}  // namespace tasuki
