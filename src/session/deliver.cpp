// Deliver: see deliver.hpp.
#include "session/deliver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <limits>
#include <memory>
#include <utility>

#include "session/collective.hpp"
#include "session/mpi.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

using Letters = std::vector<std::pair<int, std::string>>;

// Of messages in the communicator of collectives, whose other messages have lower tags. No rank begins a delivery
// before all have ended the one before: they compare something in between.
constexpr int kTag = 3;

// A send ends when its receiver has found the message. A rank whose sends have ended enters a barrier. When the barrier
// ends all messages have been found, so no more come.
class Delivery {
 public:
  Delivery(MPI_Comm comm, std::span<const int> receivers, std::vector<std::string> texts)
      : comm_(comm), flight_(std::make_unique<Flight>()) {
    flight_->out = std::move(texts);
    flight_->sends.assign(receivers.size(), MPI_REQUEST_NULL);
    for (std::size_t i = 0; i < receivers.size(); ++i) {
      const std::string& text = flight_->out[i];
      mpi::Issend(text.data(), static_cast<int>(text.size()), MPI_BYTE, receivers[i], kTag, comm, &flight_->sends[i]);
    }
  }
  ~Delivery() {
    // MPI may still write into the buffers, so they are never freed.
    if (!over_) (void)flight_.release();
  }
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;

  // Makes progress; true once everything has come. Never blocks.
  bool ended() {
    while (found_one()) {
    }
    if (!done(flight_->sends)) return false;
    if (!in_barrier_) {
      in_barrier_ = true;
      mpi::Ibarrier(comm_, &flight_->barrier);
    }
    int all_found = 0;
    mpi::Test(&flight_->barrier, &all_found, MPI_STATUS_IGNORE);
    over_ = all_found != 0 && done(flight_->receives);
    return over_;
  }

  Letters taken() {
    Letters letters;
    for (std::size_t i = 0; i < flight_->in.size(); ++i)
      letters.emplace_back(flight_->senders[i], std::move(flight_->in[i]));
    return letters;
  }

 private:
  struct Flight {
    std::vector<std::string> out;
    std::deque<std::string> in;  // whose places do not change
    std::vector<int> senders;
    std::vector<MPI_Request> sends, receives;
    MPI_Request barrier = MPI_REQUEST_NULL;
  };

  static bool done(std::vector<MPI_Request>& requests) {
    int all = 0;
    mpi::Testall(static_cast<int>(requests.size()), requests.data(), &all, MPI_STATUSES_IGNORE);
    return all != 0;
  }

  // Begins to receive a message that has come; false if there is none.
  bool found_one() {
    int found = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    mpi::Improbe(MPI_ANY_SOURCE, kTag, comm_, &found, &message, &status);
    if (found == 0) return false;
    int bytes = 0;
    mpi::Get_count(&status, MPI_BYTE, &bytes);
    flight_->senders.push_back(status.MPI_SOURCE);
    std::string& text = flight_->in.emplace_back(static_cast<std::size_t>(bytes), '\0');
    flight_->receives.push_back(MPI_REQUEST_NULL);
    mpi::Imrecv(text.data(), bytes, MPI_BYTE, &message, &flight_->receives.back());
    return true;
  }

  MPI_Comm comm_;
  std::unique_ptr<Flight> flight_;
  bool in_barrier_ = false;
  bool over_ = false;
};

Letters between_processes(Runtime& runtime, std::span<const int> receivers, std::vector<std::string> texts,
                          const std::string& doing) {
  Delivery delivery(runtime.communicator().mpi(), receivers, std::move(texts));
  try {
    wait_until(
        runtime, runtime.everyone(), [&] { return delivery.ended(); },
        [&] { return fmt::format("rank {}: {}", runtime.rank(), doing); });
  } catch (const std::exception& error) {
    runtime.fail(error.what());  // needed after an interruption; other failures have called it already
    throw;
  }
  return delivery.taken();
}

// Threads of one process: who sends to whom is gathered.
Letters between_threads(Runtime& runtime, std::span<const int> receivers, std::span<const std::string> texts,
                        const std::string& doing) {
  const std::vector<std::int64_t> mine(receivers.begin(), receivers.end());
  const std::vector<std::string> lists = gather_texts(runtime, Encoder().numbers(mine).bytes(), doing);
  std::vector<int> peers, senders;  // a peer may only send, or only receive
  std::vector<std::string> out;
  Letters letters;
  for (int rank = 0; rank < runtime.size(); ++rank) {
    const std::vector<std::int64_t> theirs = Decoder(lists[static_cast<std::size_t>(rank)]).numbers();
    const bool sends = std::ranges::count(theirs, runtime.rank()) > 0;
    const auto place = std::ranges::find(receivers, rank) - receivers.begin();
    const bool receives = place < std::ssize(receivers);
    const std::string text = receives ? texts[static_cast<std::size_t>(place)] : std::string();
    if (rank == runtime.rank()) {
      if (receives) letters.emplace_back(rank, text);
    } else if (sends || receives) {
      peers.push_back(rank);
      out.push_back(text);
      if (sends) senders.push_back(rank);
    }
  }
  std::vector<std::string> in = exchange(runtime, peers, out);
  for (std::size_t p = 0; p < peers.size(); ++p)
    if (std::ranges::count(senders, peers[p]) > 0) letters.emplace_back(peers[p], std::move(in[p]));
  return letters;
}

}  // namespace

Letters deliver(Runtime& runtime, Attempt& attempt, const std::string& operation, std::span<const int> receivers,
                const Attempt::Tell& tell, const std::string& doing) {
  const std::string what = fmt::format("{}: {}", operation, doing);
  std::vector<std::string> texts(receivers.size());
  attempt.locally("describing a part to some ranks", [&] {
    for (std::size_t r = 0; r < receivers.size(); ++r) {
      Encoder to;
      tell(r, to);
      texts[r] = std::move(to).bytes();
      if (texts[r].size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
        throw Error(
            fmt::format("what it tells rank {} has {} bytes; 2 GiB are too many", receivers[r], texts[r].size()));
    }
  });
  if (attempt.failing()) receivers = {};
  runtime.refuse_if_failed(what);
  Letters letters = runtime.communicator().threads() ? between_threads(runtime, receivers, texts, what)
                                                     : between_processes(runtime, receivers, std::move(texts), what);
  (void)attempt.combine(operation, {}, what);
  std::ranges::stable_sort(letters, {}, &Letters::value_type::first);
  return letters;
}

}  // namespace tasuki
