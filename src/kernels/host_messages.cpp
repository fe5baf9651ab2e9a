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
using device::detail::kHeaderBytes;
using device::detail::kHeaderNumber;
using device::detail::kHeaderSource;
using device::detail::kSliceSlots;

constexpr Word kSlots = 256;
constexpr Word kHeaderSent = 2 * sizeof(Word);  // all bytes, and the number
constexpr std::size_t kAligned = 128;
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
      staging_(allocate_for_host(on_gpu, places * (room + device::detail::kHeader))),
      counts_(std::reinterpret_pointer_cast<Word>(
          allocate_for_host(on_gpu, places * device::detail::kCountWords * sizeof(Word)))),
      sliced_(allocate_for_kernels(on_gpu, kAligned + places * sizeof(device::detail::Sliced))) {
  messages_.reserve(places);
}

void HostMessages::connect() {
  comm_ = mpi::duplicate(runtime_.messages(), runtime_.deadline, "making the communicator for kernels' messages");
  slices_ = mpi::duplicate(runtime_.messages(), runtime_.deadline, "making the communicator for slices of kernels");
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
  std::vector<MPI_Request> requests;
  for (const KernelMessage& message : messages_) {
    requests.push_back(message.request);
    requests.insert(requests.end(), message.slots.begin(), message.slots.end());
  }
  std::erase(requests, MPI_REQUEST_NULL);
  for (MPI_Request& request : requests) mpi::calls().Cancel(&request);
  const auto end = std::chrono::steady_clock::now() + kFarewell;
  for (MPI_Request& request : requests) {
    int ended = 0;
    while (ended == 0 && mpi::calls().Test(&request, &ended, MPI_STATUS_IGNORE) == MPI_SUCCESS) {
      if (ended != 0 || std::chrono::steady_clock::now() > end) break;
      std::this_thread::yield();
    }
    if (ended != 0) continue;
    if (request != MPI_REQUEST_NULL) mpi::calls().Request_free(&request);
    [[maybe_unused]] const auto* const kept = new std::shared_ptr<std::byte>(staging_);
  }
}

device::ByHost HostMessages::device() const {
  device::ByHost all{};
  all.proxy = ring_.device();
  all.staging = reinterpret_cast<device::Byte*>(staging_.get());
  all.counts = counts_.get();
  all.sliced = reinterpret_cast<device::detail::Sliced*>(sliced_.get() + kAligned);
  all.sliced_open = reinterpret_cast<Word*>(sliced_.get());
  all.room = room_;
  all.largest_tag = largest_tag_;
  return all;
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
    busy = busy || ended || messages_[i].slices > 0;
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
  const int peer = message.peer() == device::kAnyRank ? MPI_ANY_SOURCE : message.peer();
  Word bytes = room_ + kHeaderSent;
  if (message.sends() && message.bytes() <= room_) {
    bytes = message.bytes();
  } else if (message.sends()) {
    message.number = next_number_;
    next_number_ = next_number_ == largest_tag_ ? 0 : next_number_ + 1;
    header_of(message)[kHeaderBytes] = message.bytes();
    header_of(message)[kHeaderNumber] = static_cast<Word>(message.number);
  }
  const int code = message.sends() ? mpi::calls().Isend(staging_of(message), static_cast<int>(bytes), MPI_BYTE, peer,
                                                        tag, comm_, &message.request)
                                   : mpi::calls().Irecv(staging_of(message), static_cast<int>(bytes), MPI_BYTE, peer,
                                                        tag, comm_, &message.request);
  return code == MPI_SUCCESS || fail(message, message.sends() ? "MPI_Isend" : "MPI_Irecv", code);
}

bool HostMessages::look(KernelMessage& message, bool& ended) {
  if (message.slices > 0) return carry_on(message, ended);
  int done = 0;
  MPI_Status status;
  const int code = mpi::calls().Test(&message.request, &done, &status);
  if (code != MPI_SUCCESS) return fail(message, "MPI_Test", code);
  if (done == 0) return true;
  ended = has_come(message, status);
  return ended || carry_on(message, ended);
}

// What MPI has ended is the whole message, of which the kernel then hears; or slices follow, and it returns false.
bool HostMessages::has_come(KernelMessage& message, const MPI_Status& status) {
  Word answer = answer_of(device::detail::kDelivered, message.bytes(), message.tag());
  Word all = message.bytes();
  if (!message.sends()) {
    int bytes = 0;
    mpi::calls().Get_count(&status, MPI_BYTE, &bytes);
    message.came = status.MPI_TAG;
    message.source = status.MPI_SOURCE;
    header_of(message)[kHeaderSource] = static_cast<Word>(message.source);
    all = static_cast<Word>(bytes);
    if (all > room_) {
      all = header_of(message)[kHeaderBytes];
      message.number = static_cast<int>(header_of(message)[kHeaderNumber]);
    }
    answer =
        answer_of(all > message.bytes() ? device::detail::kTooLong : device::detail::kDelivered, all, message.came);
  }
  if (all <= room_ || all > message.bytes()) {
    ring_.answer(message.asked, answer);
    return true;
  }
  message.all = all;
  message.slices = device::detail::slices_of(all, room_);
  message.begun = message.ended = kSliceSlots;
  publish(message);
  return false;
}

// A slot of a sender is free when its slice has been sent, one of a receiver when the kernel has unpacked it.
bool HostMessages::carry_on(KernelMessage& message, bool& ended) {
  const Word most = device::detail::slice_bytes(room_);
  const Word kernel = device::detail::load_acquire(counts_of(message));
  const Word until = message.sends() ? kernel : std::min(message.slices, kernel + kSliceSlots);
  for (; message.begun < until; ++message.begun) {
    const auto bytes = static_cast<int>(std::min(most, message.all - message.begun * most));
    std::byte* const slot = staging_of(message) + message.begun % kSliceSlots * most;
    MPI_Request* const request = &message.slots[message.begun % kSliceSlots];
    const int code = message.sends()
                         ? mpi::calls().Isend(slot, bytes, MPI_BYTE, message.peer(), message.number, slices_, request)
                         : mpi::calls().Irecv(slot, bytes, MPI_BYTE, message.peer(), message.number, slices_, request);
    if (code != MPI_SUCCESS) return fail(message, message.sends() ? "MPI_Isend" : "MPI_Irecv", code);
  }
  const Word before = message.ended;
  for (; message.ended < message.begun; ++message.ended) {
    int done = 0;
    const int code = mpi::calls().Test(&message.slots[message.ended % kSliceSlots], &done, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return fail(message, "MPI_Test", code);
    if (done == 0) break;
  }
  if (message.ended > before) publish(message);
  ended = message.ended == message.slices;
  if (ended)
    ring_.answer(message.asked,
                 answer_of(device::detail::kDelivered, message.all, message.sends() ? message.tag() : message.came));
  return true;
}

// Ends the kernels that wait; the next call of the host asks why.
bool HostMessages::fail(const KernelMessage& message, const char* call, int code) {
  const std::string peer = message.peer() == device::kAnyRank ? "any rank" : fmt::format("rank {}", message.peer());
  failure_ = fmt::format("rank {}: Messages: the message {} {} of a kernel: {} failed: {}", runtime_.rank(),
                         message.sends() ? "to" : "from", peer, call, mpi_error_text(code));
  failed_.store(true, std::memory_order_release);
  abort_();
  return false;
}

}  // namespace tasuki
