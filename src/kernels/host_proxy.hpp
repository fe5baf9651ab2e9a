// HostProxy: lets kernels on threads of the host start the messages of a plan. The process's progress thread drives the
// channels, as otherwise the host's engine does. A kernel asks for a message in one word and sees its end in another,
// as kernels on GPUs do (transports/channel.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engines/gpu/program.hpp"
#include "session/worker.hpp"

namespace tasuki {

class HostProxy final : public Worker::Task {
 public:
  /// For all sends and receives of `program` that have a channel which the host drives; they are in no loop. `abort`
  /// ends the kernels' waits; it may be called by another thread. `over` says that nobody can be reached any more.
  HostProxy(const Program& program, std::function<void()> abort, std::function<bool()> over);
  ~HostProxy() override;
  HostProxy(const HostProxy&) = delete;
  HostProxy& operator=(const HostProxy&) = delete;

  ThreadChannels channels() const;  ///< by command
  std::string failure() const;      ///< what went wrong, if something did

  bool serve() override;
  bool asked() const override { return false; }
  bool asked_silently() const override { return true; }

 private:
  struct alignas(64) Word {
    std::uint64_t value = 0;
  };
  class PlanMessage final : public ThreadChannel {
   public:
    PlanMessage(const Program& program, std::size_t command);
    std::uint64_t* asked() const override { return &asked_->value; }
    const std::uint64_t* ended() const override { return &ended_->value; }
    std::string failure() const override { return {}; }

    bool wanted() const;
    void begin();
    void look();
    void cancel();

    std::size_t command;
    int peer;
    int tag;
    bool sends;
    bool active = false;
    std::uint64_t begun = 0;              // the last epoch in which it began
    const PlanMessage* behind = nullptr;  // the message before it with this tag, which MPI distinguishes by order alone

   private:
    HostChannel& channel_;
    std::unique_ptr<Word> asked_ = std::make_unique<Word>();
    std::unique_ptr<Word> ended_ = std::make_unique<Word>();
  };
  void fail(const PlanMessage& message, const std::string& why);

  const Program& program_;
  std::function<void()> abort_;
  std::function<bool()> over_;
  std::vector<std::unique_ptr<PlanMessage>> messages_;
  std::string failure_;  // written before `failed_`
  std::atomic<bool> failed_{false};
};

}  // namespace tasuki
