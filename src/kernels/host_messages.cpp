// HostMessages: see host_messages.hpp.
#include "kernels/host_messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "session/mpi.hpp"

namespace tasuki {
namespace {

using device::Word;
using device::detail::answer_of;

constexpr Word kSlots = 256;
constexpr std::chrono::milliseconds kFarewell{200};  // that withdrawn messages may take

int largest_tag(MPI_Comm comm) {
  constexpr int kSmallest = 32767;  // what every MPI allows
  int found = 0;
  int* upper = nullptr;
  mpi::Comm_get_attr(comm, MPI_TAG_UB, static_cast<void*>(&upper), &found);
  return found != 0 ? *upper : kSmallest;
}

}  // namespace

std::string HostMessages::why_not(const Runtime& runtime) {
  if (runtime.topology().threads) return "the ranks are threads of one process, between which there is no MPI";
  if (runtime.thread_level() < MPI_THREAD_MULTIPLE)
    return "the host's thread that would carry messages needs MPI_THREAD_MULTIPLE, but MPI was started with less; use "
           "MPI_Init_thread";
  return {};
}

HostMessages::HostMessages(Runtime& runtime, bool on_gpu, Word places, Word room, std::function<void()> abort)
    : runtime_(runtime),
      abort_(std::move(abort)),
      room_(room),
      ring_(on_gpu, kSlots, places),
      staging_(allocate_for_host(on_gpu, std::max<Word>(1, places * room))) {
  messages_.reserve(places);
}

void HostMessages::connect() {
  comm_ = mpi::duplicate(runtime_.messages(), runtime_.deadline, "making the communicator for kernels' messages");
  largest_tag_ = largest_tag(comm_);
  Worker::instance().add(this);
}

HostMessages::~HostMessages() {
  Worker::instance().remove(this);
  if (!messages_.empty() && mpi_running() && !runtime_.inherited()) finish();
}

// Messages that no kernel has waited for, or that a failure has left. If one does not end now, MPI may still read or
// write its staging memory, so that memory is never freed.
void HostMessages::finish() {
  for (KernelMessage& message : messages_) mpi::calls().Cancel(&message.request);
  const auto end = std::chrono::steady_clock::now() + kFarewell;
  for (KernelMessage& message : messages_) {
    int ended = 0;
    while (ended == 0 && mpi::calls().Test(&message.request, &ended, MPI_STATUS_IGNORE) == MPI_SUCCESS) {
      if (ended != 0 || std::chrono::steady_clock::now() > end) break;
      std::this_thread::yield();
    }
    if (ended != 0) continue;
    if (message.request != MPI_REQUEST_NULL) mpi::calls().Request_free(&message.request);
    [[maybe_unused]] const auto* const kept = new std::shared_ptr<std::byte>(staging_);
  }
}

device::ByHost HostMessages::device() const {
  return {ring_.device(), reinterpret_cast<device::Byte*>(staging_.get()), room_, largest_tag_};
}

std::string HostMessages::failure() const {
  return failed_.load(std::memory_order_acquire) ? failure_ : std::string();
}

bool HostMessages::serve() {
  if (failed_.load(std::memory_order_relaxed) || runtime_.over()) return false;
  bool busy = false;
  HostRing::Asked asked;
  while (ring_.next(asked)) {
    busy = true;
    if (asked.request.what == device::detail::kEcho) {
      ring_.answer(asked, asked.request.a);
    } else if (!begin(asked)) {
      return false;
    }
  }
  // A message whose peer is slow keeps its place in the list, and delays no other message.
  for (std::size_t i = 0; i < messages_.size();) {
    bool ended = false;
    if (!look(messages_[i], ended)) return false;
    busy = busy || ended;
    if (ended) {
      messages_[i] = messages_.back();  // MPI has matched them: their order means nothing any more
      messages_.pop_back();
    } else {
      ++i;
    }
  }
  return busy;
}

bool HostMessages::begin(const HostRing::Asked& asked) {
  messages_.push_back({asked});
  KernelMessage& message = messages_.back();
  // A receive takes whatever a sender can send, so that one that is too long is found out here.
  const int tag = message.tag() == device::kAnyTag ? MPI_ANY_TAG : message.tag();
  const int code = message.sends() ? mpi::calls().Isend(staging_of(message), static_cast<int>(message.bytes()),
                                                        MPI_BYTE, message.peer(), tag, comm_, &message.request)
                                   : mpi::calls().Irecv(staging_of(message), static_cast<int>(room_), MPI_BYTE,
                                                        message.peer(), tag, comm_, &message.request);
  return code == MPI_SUCCESS || fail(message, message.sends() ? "MPI_Isend" : "MPI_Irecv", code);
}

bool HostMessages::look(KernelMessage& message, bool& ended) {
  int done = 0;
  MPI_Status status;
  const int code = mpi::calls().Test(&message.request, &done, &status);
  if (code != MPI_SUCCESS) return fail(message, "MPI_Test", code);
  if (done == 0) return true;
  ended = true;
  Word answer = answer_of(device::detail::kDelivered, message.bytes(), message.tag());
  if (!message.sends()) {
    int bytes = 0;
    mpi::calls().Get_count(&status, MPI_BYTE, &bytes);
    const auto count = static_cast<Word>(bytes);
    answer = answer_of(count > message.bytes() ? device::detail::kTooLong : device::detail::kDelivered, count,
                       status.MPI_TAG);
  }
  ring_.answer(message.asked, answer);
  return true;
}

// Ends the kernels that wait; the next call of the host asks why.
bool HostMessages::fail(const KernelMessage& message, const char* call, int code) {
  failure_ = fmt::format("rank {}: Messages: the message {} rank {} of a kernel: {} failed: {}", runtime_.rank(),
                         message.sends() ? "to" : "from", message.peer(), call, mpi_error_text(code));
  failed_.store(true, std::memory_order_release);
  abort_();
  return false;
}

}  // namespace tasuki
