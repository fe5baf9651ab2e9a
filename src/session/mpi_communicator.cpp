// The communicator of ranks that are processes: nonblocking collectives and pairwise messages of MPI.
#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

#include "session/communicator.hpp"
#include "session/mpi.hpp"
#include "session/roster.hpp"

namespace tasuki {
namespace {

constexpr int kFirstTag = 1;  // of messages in the communicator that otherwise carries collectives only
constexpr int kRestTag = 2;
// A text for a peer goes with its size before it, in one message of so many bytes at most, which MPIs send at once.
// What ranks tell each other of an operation mostly fits. If there is more it goes in another one.
constexpr std::size_t kFirst = 2048;
constexpr std::size_t kSize = sizeof(std::int64_t);
// What all ranks gather begins with so many bytes of each: the size of its text, and the begin of it.
constexpr int kHead = 64;
constexpr std::int64_t kInHead = kHead - static_cast<int>(kSize);
constexpr std::int64_t kPart = 16 << 20;  // bytes of a rank's text in one call of MPI, which counts in int, at most

/// The tag for making a part: a hash of its ranks and number, on which the ranks have agreed, in the range that every
/// MPI allows. Two ranks make the parts that they share one after the other and in the same order, so equal tags are
/// harmless.
int part_tag(std::span<const int> ranks, int number) {
  constexpr std::uint32_t kTags = 32768;
  std::uint32_t hash = static_cast<std::uint32_t>(number);
  for (const int rank : ranks) hash = hash * 31 + static_cast<std::uint32_t>(rank);
  return static_cast<int>(hash % kTags);
}

/// The buffers and requests of calls in progress.
struct Flight {
  std::vector<MPI_Request> requests;
  std::string own;
  std::vector<std::int64_t> sizes;
  std::int64_t taken = 0;         // bytes of every text that have been gathered
  std::vector<int> parts, begin;  // of the call in progress
  std::vector<char> all;
  std::vector<std::uint64_t> words;
  std::vector<std::string> out, in;  // each with its size before it

  MPI_Request* request() { return &requests.emplace_back(MPI_REQUEST_NULL); }
};

/// A sequence of steps. Each step begins MPI calls or takes their results, once the calls of the step before have
/// ended. A step that returns true is repeated.
class MpiPending final : public Pending {
 public:
  using Step = std::function<bool(Flight&, Pending&)>;
  MpiPending(Flight flight, std::vector<Step> steps)
      : flight_(std::make_unique<Flight>(std::move(flight))), steps_(std::move(steps)) {
    step();
  }
  ~MpiPending() override {
    // MPI may still write into the buffers, so they are never freed.
    if (!flight_->requests.empty()) (void)flight_.release();
  }

  bool ended() override {
    for (;;) {
      int done = 0;
      mpi::Testall(static_cast<int>(flight_->requests.size()), flight_->requests.data(), &done, MPI_STATUSES_IGNORE);
      if (done == 0) return false;
      flight_->requests.clear();
      if (next_ == steps_.size()) return true;
      step();
    }
  }

 private:
  void step() {
    if (!steps_[next_](*flight_, *this)) ++next_;
  }

  std::unique_ptr<Flight> flight_;
  std::vector<Step> steps_;
  std::size_t next_ = 0;
};

class MpiCommunicator final : public Communicator {
 public:
  explicit MpiCommunicator(MPI_Comm comm) : comm_(mpi::duplicate(comm, making_deadline(), "making the communicator")) {
    complete();
  }
  /// The communicator of a part, which owns `comm`.
  MpiCommunicator(MPI_Comm comm, double seconds) : comm_(comm) {
    making_deadline_ = seconds;
    complete();
  }

  ~MpiCommunicator() override {
    if (abandoned_ || !running()) return;
    if (!keeps_messages_) mpi::calls().Comm_free(&messages_);
    mpi::calls().Comm_free(&comm_);
  }

  std::unique_ptr<Pending> gather(const std::string& text) override {
    Flight flight;
    flight.own = text;
    flight.sizes.assign(static_cast<std::size_t>(size_), 0);
    flight.all.assign(static_cast<std::size_t>(size_) * kHead, 0);
    char* const own = flight.all.data() + static_cast<std::size_t>(rank_) * kHead;
    const auto bytes = static_cast<std::int64_t>(text.size());
    std::memcpy(own, &bytes, kSize);
    text.copy(own + kSize, kInHead);
    flight.parts.assign(static_cast<std::size_t>(size_), 0);
    flight.begin.assign(static_cast<std::size_t>(size_), 0);
    const auto heads = [comm = comm_](Flight& f, Pending&) {
      mpi::Iallgather(MPI_IN_PLACE, kHead, MPI_BYTE, f.all.data(), kHead, MPI_BYTE, comm, f.request());
      return false;
    };
    const auto begins = [](Flight& f, Pending& pending) {
      pending.texts.resize(f.sizes.size());
      for (std::size_t r = 0; r < f.sizes.size(); ++r) {
        const char* const head = f.all.data() + r * kHead;
        std::memcpy(&f.sizes[r], head, kSize);
        pending.texts[r].assign(head + kSize, static_cast<std::size_t>(std::min(f.sizes[r], kInHead)));
      }
      f.taken = kInHead;
      return false;
    };
    const std::int64_t most = std::min<std::int64_t>(kPart, std::numeric_limits<int>::max() / size());
    const auto parts = [comm = comm_, rank = static_cast<std::size_t>(rank_), most](Flight& f, Pending& pending) {
      std::int64_t left = 0;
      for (std::size_t r = 0; r < f.sizes.size(); ++r) {
        if (f.parts[r] > 0) pending.texts[r].append(f.all.data() + f.begin[r], static_cast<std::size_t>(f.parts[r]));
        left = std::max(left, f.sizes[r] - f.taken);
      }
      if (left <= 0) return false;
      int total = 0;
      for (std::size_t r = 0; r < f.sizes.size(); ++r) {
        f.begin[r] = total;
        f.parts[r] = static_cast<int>(std::clamp<std::int64_t>(f.sizes[r] - f.taken, 0, most));
        total += f.parts[r];
      }
      f.all.resize(static_cast<std::size_t>(total));
      const char* const rest = f.own.data() + std::min(f.taken, f.sizes[rank]);
      mpi::Iallgatherv(rest, f.parts[rank], MPI_CHAR, f.all.data(), f.parts.data(), f.begin.data(), MPI_CHAR, comm,
                       f.request());
      f.taken += most;
      return true;
    };
    return std::make_unique<MpiPending>(std::move(flight), std::vector<MpiPending::Step>{heads, begins, parts});
  }

  std::unique_ptr<Pending> combine(const std::vector<std::uint64_t>& words) override { return reduce(words, MPI_BAND); }
  std::unique_ptr<Pending> leave(std::int64_t unreceived) override {
    return reduce({static_cast<std::uint64_t>(unreceived)}, MPI_SUM);
  }

  std::unique_ptr<Pending> exchange(std::span<const int> peers, std::span<const std::string> texts) override {
    Flight flight;
    flight.out.reserve(texts.size());
    for (const std::string& text : texts) {
      const auto size = static_cast<std::int64_t>(text.size());
      std::string& out = flight.out.emplace_back();
      out.reserve(kSize + text.size());
      out.append(reinterpret_cast<const char*>(&size), kSize).append(text);
    }
    flight.in.assign(peers.size(), std::string(kFirst, '\0'));
    const std::vector<int> others(peers.begin(), peers.end());
    // The bytes of every text from `begin` to `end`, as far as it has them.
    const auto swap = [comm = comm_, others](Flight& f, int tag, std::size_t begin, std::size_t end) {
      const auto bytes = [&](const std::string& text) { return static_cast<int>(std::min(text.size(), end) - begin); };
      for (std::size_t i = 0; i < others.size(); ++i)
        if (std::string& text = f.in[i]; text.size() > begin)
          mpi::Irecv(text.data() + begin, bytes(text), MPI_BYTE, others[i], tag, comm, f.request());
      for (std::size_t i = 0; i < others.size(); ++i)
        if (const std::string& text = f.out[i]; text.size() > begin)
          mpi::Isend(text.data() + begin, bytes(text), MPI_BYTE, others[i], tag, comm, f.request());
    };
    const auto first = [swap](Flight& f, Pending&) {
      swap(f, kFirstTag, 0, kFirst);
      return false;
    };
    const auto rest = [swap](Flight& f, Pending&) {
      for (std::string& text : f.in) {
        std::int64_t size = 0;
        std::memcpy(&size, text.data(), kSize);
        text.resize(kSize + static_cast<std::size_t>(size));
      }
      swap(f, kRestTag, kFirst, std::numeric_limits<std::size_t>::max());
      return false;
    };
    const auto take = [](Flight& f, Pending& pending) {
      for (std::string& text : f.in) text.erase(0, kSize);
      pending.texts = std::move(f.in);
      return false;
    };
    return std::make_unique<MpiPending>(std::move(flight), std::vector<MpiPending::Step>{first, rest, take});
  }

  std::unique_ptr<Communicator> part(std::span<const int> ranks, int number, double seconds) override {
    return std::make_unique<MpiCommunicator>(mpi::part(comm_, ranks, part_tag(ranks, number), seconds), seconds);
  }

  bool running() const override { return mpi_running(); }
  void abandon(const std::string&) override { abandoned_ = true; }
  std::string broken() override { return roster_->dead(); }
  void found(const Topology& topology) override { Roster::learn(comm_, topology); }
  MPI_Comm mpi() const override { return comm_; }
  MPI_Comm messages() const override { return messages_; }
  void keep_messages() override { keeps_messages_ = true; }

 private:
  std::unique_ptr<Pending> reduce(const std::vector<std::uint64_t>& words, MPI_Op op) {
    Flight flight;
    flight.words = words;
    const auto begin = [comm = comm_, op](Flight& f, Pending&) {
      mpi::Iallreduce(MPI_IN_PLACE, f.words.data(), static_cast<int>(f.words.size()), MPI_UINT64_T, op, comm,
                      f.request());
      return false;
    };
    const auto take = [](Flight& f, Pending& pending) {
      pending.words = f.words;
      return false;
    };
    return std::make_unique<MpiPending>(std::move(flight), std::vector<MpiPending::Step>{begin, take});
  }

  void complete() {
    messages_ = mpi::duplicate(comm_, making_deadline(), "making the communicator for messages");
    mpi::Comm_rank(comm_, &rank_);
    mpi::Comm_size(comm_, &size_);
    roster_ = std::make_unique<Roster>(comm_);
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Comm messages_ = MPI_COMM_NULL;
  std::unique_ptr<Roster> roster_;
  bool abandoned_ = false;
  bool keeps_messages_ = false;
};

}  // namespace

std::unique_ptr<Communicator> communicator_over(MPI_Comm comm) {
  return std::make_unique<MpiCommunicator>(comm);
}

}  // namespace tasuki
