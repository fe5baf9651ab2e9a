// HostProxy: see host_proxy.hpp.
#include "kernels/host_proxy.hpp"

#include <fmt/format.h>

#include <exception>
#include <utility>

namespace tasuki {

HostProxy::PlanMessage::PlanMessage(const Program& program, std::size_t at)
    : command(at),
      peer(program.plan.commands[at].peer),
      tag(program.plan.commands[at].tag),
      sends(program.plan.commands[at].verb == Verb::send),
      channel_(*program.channels[at].host) {}

// The kernel asks for messages in the order of the lane. But this thread may look at one message's word before the
// kernel asks for it, and at the next one's word after the kernel has asked for both.
bool HostProxy::PlanMessage::wanted() const {
  const std::uint64_t epoch = std::atomic_ref(asked_->value).load(std::memory_order_acquire) / kSignal;
  return !active && epoch > begun && (behind == nullptr || behind->begun >= epoch);
}

void HostProxy::PlanMessage::begin() {
  const std::uint64_t word = std::atomic_ref(asked_->value).load(std::memory_order_relaxed);
  begun = word / kSignal;
  active = true;
  channel_.start(0, static_cast<int>(word % kSignal));
}

void HostProxy::PlanMessage::look() {
  if (!channel_.test()) return;
  active = false;
  std::atomic_ref(ended_->value).store(begun * kWholeSignal, std::memory_order_release);
}

void HostProxy::PlanMessage::cancel() {
  if (active) channel_.cancel();
  active = false;
}

HostProxy::HostProxy(const Program& program, std::function<void()> abort, std::function<bool()> over)
    : program_(program), abort_(std::move(abort)), over_(std::move(over)) {
  const auto& commands = program.plan.commands;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    if (program.channels[i].host == nullptr) continue;
    auto message = std::make_unique<PlanMessage>(program, i);
    for (const auto& other : messages_)
      if (other->peer == message->peer && other->tag == message->tag && other->sends == message->sends)
        message->behind = other.get();
    messages_.push_back(std::move(message));
  }
  Worker::instance().add(this);
}

HostProxy::~HostProxy() {
  Worker::instance().remove(this);
  for (const auto& message : messages_) message->cancel();  // only after a failure
}

ThreadChannels HostProxy::channels() const {
  ThreadChannels all(program_.plan.commands.size(), nullptr);
  for (const auto& message : messages_) all[message->command] = message.get();
  return all;
}

std::string HostProxy::failure() const {
  return failed_.load(std::memory_order_acquire) ? failure_ : std::string();
}

bool HostProxy::serve() {
  if (failed_.load(std::memory_order_relaxed) || over_()) return false;
  bool busy = false;
  // Receives first, so that fewer messages arrive before their receive is posted. The end of a message makes no other
  // one begin, so one round is enough.
  for (const bool sends : {false, true}) {
    for (const auto& message : messages_) {
      if (message->sends != sends) continue;
      try {
        if (message->wanted()) message->begin();
        if (!message->active) continue;
        busy = true;
        message->look();
      } catch (const std::exception& error) {
        fail(*message, error.what());
        return false;
      }
    }
  }
  return busy;
}

void HostProxy::fail(const PlanMessage& message, const std::string& why) {
  failure_ = fmt::format("rank {}: {}: epoch {} did not end: #{} {} with rank {}: {}", program_.plan.rank,
                         program_.plan.operation, message.begun, message.command, message.sends ? "send" : "recv",
                         message.peer, why);
  failed_.store(true, std::memory_order_release);
  abort_();
}

}  // namespace tasuki
