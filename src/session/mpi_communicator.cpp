// Ranks that are processes: nonblocking collectives, pairwise messages and shared windows of MPI.
#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "memory/window.hpp"
#include "session/communicator.hpp"
#include "session/mpi.hpp"

namespace tasuki {
namespace {

constexpr int kSizeTag = 1;  // in the communicator that is otherwise for collectives only
constexpr int kTextTag = 2;
constexpr std::int64_t kPart =
    16 << 20;  // bytes of a rank's text that are gathered at once, at most: MPI counts in int

/// What MPI works on.
struct Flight {
  std::vector<MPI_Request> requests;
  std::string own;
  std::vector<std::int64_t> sizes;
  std::int64_t taken = 0;         // of every text
  std::vector<int> parts, begin;  // of what is on its way
  std::vector<char> all;
  std::vector<std::uint64_t> words;
  std::vector<std::int64_t> out_sizes, in_sizes;
  std::vector<std::string> out, in;

  MPI_Request* request() { return &requests.emplace_back(MPI_REQUEST_NULL); }
};

/// Calls that follow each other: every step begins some, or takes what they have brought. One that returns true does so
/// again.
class MpiPending final : public Pending {
 public:
  using Step = std::function<bool(Flight&, Pending&)>;
  MpiPending(Flight flight, std::vector<Step> steps)
      : flight_(std::make_unique<Flight>(std::move(flight))), steps_(std::move(steps)) {
    step();
  }
  ~MpiPending() override {
    // MPI may write into the buffers later, so they are never given back.
    if (!flight_->requests.empty()) (void)flight_.release();
  }

  bool ended() override {
    for (;;) {
      int done = 0;
      check_mpi(
          MPI_Testall(static_cast<int>(flight_->requests.size()), flight_->requests.data(), &done, MPI_STATUSES_IGNORE),
          "MPI_Testall");
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

MPI_Comm duplicate(MPI_Comm comm) {
  MPI_Comm copy = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(comm, &copy), "MPI_Comm_dup");
  check_mpi(MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  return copy;
}

class MpiCommunicator final : public Communicator {
 public:
  explicit MpiCommunicator(MPI_Comm comm) : comm_(duplicate(comm)), messages_(duplicate(comm)) {
    int size = 0;
    check_mpi(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(comm_, &size), "MPI_Comm_size");
    check_mpi(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host_), "MPI_Comm_split_type");
    check_mpi(MPI_Comm_set_errhandler(host_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");

    MPI_Group everyone = MPI_GROUP_NULL;
    MPI_Group neighbours = MPI_GROUP_NULL;
    check_mpi(MPI_Comm_group(comm_, &everyone), "MPI_Comm_group");
    check_mpi(MPI_Comm_group(host_, &neighbours), "MPI_Comm_group");
    std::vector<int> ranks(static_cast<std::size_t>(size));
    std::iota(ranks.begin(), ranks.end(), 0);
    places_.resize(ranks.size());
    check_mpi(MPI_Group_translate_ranks(everyone, size, ranks.data(), neighbours, places_.data()),
              "MPI_Group_translate_ranks");
    MPI_Group_free(&everyone);
    MPI_Group_free(&neighbours);
    for (int& place : places_)
      if (place == MPI_UNDEFINED) place = -1;
  }

  ~MpiCommunicator() override {
    if (abandoned_ || !running()) return;
    for (MPI_Comm* comm : {&host_, &messages_, &comm_}) MPI_Comm_free(comm);
  }

  std::unique_ptr<Pending> gather(const std::string& text) override {
    Flight flight;
    flight.own = text;
    flight.sizes.assign(places_.size(), 0);
    flight.sizes[static_cast<std::size_t>(rank_)] = static_cast<std::int64_t>(text.size());
    flight.parts.assign(places_.size(), 0);
    flight.begin.assign(places_.size(), 0);
    const auto sizes = [comm = comm_](Flight& f, Pending& pending) {
      pending.texts.resize(f.sizes.size());
      check_mpi(MPI_Iallgather(MPI_IN_PLACE, 1, MPI_INT64_T, f.sizes.data(), 1, MPI_INT64_T, comm, f.request()),
                "MPI_Iallgather");
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
      const char* own = f.own.data() + std::min(f.taken, f.sizes[rank]);
      check_mpi(MPI_Iallgatherv(own, f.parts[rank], MPI_CHAR, f.all.data(), f.parts.data(), f.begin.data(), MPI_CHAR,
                                comm, f.request()),
                "MPI_Iallgatherv");
      f.taken += most;
      return true;
    };
    return std::make_unique<MpiPending>(std::move(flight), std::vector<MpiPending::Step>{sizes, parts});
  }

  std::unique_ptr<Pending> combine(const std::vector<std::uint64_t>& words) override {
    Flight flight;
    flight.words = words;
    const auto reduce = [comm = comm_](Flight& f, Pending&) {
      check_mpi(MPI_Iallreduce(MPI_IN_PLACE, f.words.data(), static_cast<int>(f.words.size()), MPI_UINT64_T, MPI_BAND,
                               comm, f.request()),
                "MPI_Iallreduce");
      return false;
    };
    const auto take = [](Flight& f, Pending& pending) {
      pending.words = f.words;
      return false;
    };
    return std::make_unique<MpiPending>(std::move(flight), std::vector<MpiPending::Step>{reduce, take});
  }

  std::unique_ptr<Pending> exchange(std::span<const int> peers, std::span<const std::string> texts) override {
    Flight flight;
    flight.out.assign(texts.begin(), texts.end());
    for (const std::string& text : texts) flight.out_sizes.push_back(static_cast<std::int64_t>(text.size()));
    flight.in_sizes.assign(peers.size(), 0);
    flight.in.resize(peers.size());
    const std::vector<int> others(peers.begin(), peers.end());
    const auto swap = [comm = comm_, others](Flight& f, int tag, auto in, auto out) {
      for (std::size_t i = 0; i < others.size(); ++i) {
        const auto [to, bytes] = in(i);
        check_mpi(MPI_Irecv(to, bytes, MPI_BYTE, others[i], tag, comm, f.request()), "MPI_Irecv");
      }
      for (std::size_t i = 0; i < others.size(); ++i) {
        const auto [from, bytes] = out(i);
        check_mpi(MPI_Isend(from, bytes, MPI_BYTE, others[i], tag, comm, f.request()), "MPI_Isend");
      }
    };
    const auto sizes = [swap](Flight& f, Pending&) {
      const auto one = [](std::int64_t& size) { return std::pair<void*, int>(&size, sizeof size); };
      swap(
          f, kSizeTag, [&](std::size_t i) { return one(f.in_sizes[i]); },
          [&](std::size_t i) { return one(f.out_sizes[i]); });
      return false;
    };
    const auto contents = [swap](Flight& f, Pending&) {
      const auto one = [](std::string& text) {
        return std::pair<void*, int>(text.data(), static_cast<int>(text.size()));
      };
      for (std::size_t i = 0; i < f.in.size(); ++i) f.in[i].resize(static_cast<std::size_t>(f.in_sizes[i]));
      swap(
          f, kTextTag, [&](std::size_t i) { return one(f.in[i]); }, [&](std::size_t i) { return one(f.out[i]); });
      return false;
    };
    const auto take = [](Flight& f, Pending& pending) {
      pending.texts = std::move(f.in);
      return false;
    };
    return std::make_unique<MpiPending>(std::move(flight), std::vector<MpiPending::Step>{sizes, contents, take});
  }

  std::string create_window(Window& window, std::int64_t bytes) override {
    MPI_Info info = MPI_INFO_NULL;
    check_mpi(MPI_Info_create(&info), "MPI_Info_create");
    // Parts need not follow each other: each may start on a page of its own, near the rank that uses it.
    check_mpi(MPI_Info_set(info, "alloc_shared_noncontig", "true"), "MPI_Info_set");
    void* base = nullptr;
    const int code = MPI_Win_allocate_shared(bytes, 1, info, host_, &base, &window.handle);
    MPI_Info_free(&info);
    if (code != MPI_SUCCESS) {
      window.handle = MPI_WIN_NULL;
      return "MPI_Win_allocate_shared failed: " + mpi_error_text(code);
    }
    window.exists = true;
    check_mpi(MPI_Win_set_errhandler(window.handle, MPI_ERRORS_RETURN), "MPI_Win_set_errhandler");

    int neighbours = 0;
    check_mpi(MPI_Comm_size(host_, &neighbours), "MPI_Comm_size");
    for (int peer = 0; peer < neighbours; ++peer) {
      MPI_Aint peer_bytes = 0;
      int unit = 0;
      void* peer_base = nullptr;
      check_mpi(MPI_Win_shared_query(window.handle, peer, &peer_bytes, &unit, &peer_base), "MPI_Win_shared_query");
      window.parts.push_back({static_cast<std::byte*>(peer_base), peer_bytes});
    }
    // MPI may round a part up; what was asked for is what may be used.
    WindowPart& own = window.parts[static_cast<std::size_t>(places_[static_cast<std::size_t>(rank_)])];
    own = {static_cast<std::byte*>(base), bytes};
    return populate(own.base, bytes) ? std::string() : "the memory behind it ran out";
  }

  void free_window(Window& window) override { check_mpi(MPI_Win_free(&window.handle), "MPI_Win_free"); }

  bool running() const override { return mpi_running(); }
  void abandon(const std::string&) override { abandoned_ = true; }
  MPI_Comm mpi() const override { return comm_; }
  MPI_Comm messages() const override { return messages_; }

 private:
  MPI_Comm comm_;
  MPI_Comm messages_;
  MPI_Comm host_ = MPI_COMM_NULL;
  bool abandoned_ = false;
};

}  // namespace

std::unique_ptr<Communicator> communicator_over(MPI_Comm comm) {
  return std::make_unique<MpiCommunicator>(comm);
}

}  // namespace tasuki
