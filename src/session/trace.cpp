// Trace: see trace.hpp.
#include "session/trace.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "plan/fields.hpp"
#include "session/generation.hpp"
#include "session/mpi.hpp"
#include "support/text_file.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

constexpr std::uint64_t kEvents = 1 << 17;  // events that are kept, 5 MB; older ones are overwritten
constexpr std::size_t kOperations = 4096;   // operations that are kept with their plans; later ones are only counted
constexpr std::int64_t kPollGap = 2000;     // ns; tests that follow each other within this time become one event
constexpr int kClockAnswers = 32;
constexpr std::size_t kKept = 64;  // epochs whose times a recorder keeps after `keep`
constexpr int kFormat = 1;

struct Event {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t round = 0;
  std::uint32_t epoch = 0;
  std::int32_t operation = 0;
  std::int32_t command = -1;
  Traced what = Traced::start;
};

class Trace {
 public:
  static Trace& instance() {
    static Trace trace;
    return trace;
  }
  ~Trace() { save(); }

  bool on() const { return !events_.empty(); }

  void begin(const std::string& folder, const Topology& topology, MPI_Comm comm) {
    const std::int64_t offset = clock_offset(
        comm, [&topology](int rank) { return topology.same_host(0, rank); }, Recorder::now);
    if (on()) return;
    // A process has one file, named after its rank in MPI_COMM_WORLD, whatever communicators its contexts have.
    mpi::Comm_rank(MPI_COMM_WORLD, &rank_);
    mpi::Comm_size(MPI_COMM_WORLD, &ranks_);
    const Process& own = topology.processes[static_cast<std::size_t>(topology.rank)];
    host_ = own.name;
    island_ = own.island;
    folder_ = folder;
    offset_ = offset;
    events_.resize(kEvents);
  }

  std::int32_t add(const Plan& plan) {
    if (plans_.size() == kOperations) {
      ++left_out_;
      return -1;
    }
    plans_.push_back(plan);
    expected_.push_back(0);
    return static_cast<std::int32_t>(plans_.size()) - 1;
  }

  void expect(std::int32_t operation, double seconds) { expected_[static_cast<std::size_t>(operation)] = seconds; }

  void record(const Event& event) {
    if (event.what == Traced::test && extend_test(event)) return;
    const std::uint64_t at = count_.fetch_add(1, std::memory_order_relaxed);
    events_[at % kEvents] = event;
    if (event.what == Traced::test) last_test_ = at;
  }

  void save() {
    const std::uint64_t count = count_.load();
    if (count == saved_ || Generation::forked()) return;  // a forked child does not write its parent's file
    const std::filesystem::path target = std::filesystem::path(folder_) / fmt::format("rank-{}.json", rank_);
    saved_ = count;
    const std::string why = replace_text(target.string(), text(count));
    if (!why.empty())
      fmt::print(stderr, "tasuki: rank {}: cannot write the trace {}: {}\n", rank_, target.string(), why);
  }

  std::atomic<int> paused{0};

 private:
  // Extends the last test's event. Without this a loop of tests would fill the whole record.
  bool extend_test(const Event& event) {
    if (last_test_ == kNone || count_.load(std::memory_order_relaxed) - last_test_ >= kEvents / 2) return false;
    Event& last = events_[last_test_ % kEvents];
    if (last.operation != event.operation || last.epoch != event.epoch || event.begin - last.end > kPollGap) {
      return false;
    }
    last.end = event.end;
    return true;
  }

  std::string text(std::uint64_t count) const {
    const std::uint64_t kept = std::min(count, kEvents);
    const nlohmann::json head = {{"format", kFormat},
                                 {"rank", rank_},
                                 {"ranks", ranks_},
                                 {"host", host_},
                                 {"island", island_},
                                 {"pid", getpid()},
                                 {"clock_offset_ns", offset_},
                                 {"events_overwritten", count - kept},
                                 {"operations_left_out", left_out_},
                                 {"kinds", {"start", "test", "wait", "command"}},
                                 {"fields", {"kind", "operation", "command", "epoch", "round", "begin_ns", "end_ns"}}};
    std::string out = "{";
    for (const auto& [key, value] : head.items())
      out += fmt::format("\"{}\": {},\n", key, value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    out += "\"plans\": [";
    for (std::size_t i = 0; i < plans_.size(); ++i) out += (i > 0 ? ",\n" : "\n") + detail::to_shown_json(plans_[i]);
    out += fmt::format("],\n\"predicted_us\": [{:.4g}],\n\"events\": [", fmt::join(in_us(expected_), ","));
    for (std::uint64_t i = count - kept; i < count; ++i) {
      const Event& e = events_[i % kEvents];
      out += fmt::format("{}[{},{},{},{},{},{},{}]", i > count - kept ? ",\n" : "\n", static_cast<int>(e.what),
                         e.operation, e.command, e.epoch, e.round, e.begin + offset_, e.end + offset_);
    }
    return out + "]}\n";
  }

  static std::vector<double> in_us(std::vector<double> seconds) {
    for (double& each : seconds) each *= 1e6;
    return seconds;
  }

  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  std::string folder_;
  std::string host_;
  int island_ = 0;
  int rank_ = 0;
  int ranks_ = 1;
  std::int64_t offset_ = 0;
  std::vector<Plan> plans_;
  std::vector<double> expected_;  // seconds of an epoch of each; 0: not predicted
  std::int64_t left_out_ = 0;
  std::vector<Event> events_;
  std::atomic<std::uint64_t> count_{0};
  std::uint64_t saved_ = 0;
  std::uint64_t last_test_ = kNone;
};

}  // namespace

void Recorder::expect(double seconds) const {
  if (operation_ >= 0) Trace::instance().expect(operation_, seconds);
}

std::unique_ptr<Recorder> Recorder::open(const Plan& plan) {
  Trace& trace = Trace::instance();
  if (!trace.on() || trace.paused > 0) return nullptr;
  const std::int32_t operation = trace.add(plan);
  return operation < 0 ? nullptr : std::unique_ptr<Recorder>(new Recorder(operation));
}

std::int64_t Recorder::now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Recorder::keep(std::size_t commands) {
  if (kept_.empty()) kept_.assign(kKept, {0, 0, 0, std::vector<std::int64_t>(commands)});
}

EpochTimes& Recorder::times_of(std::uint64_t epoch) {
  EpochTimes& times = kept_[epoch % kept_.size()];
  if (times.epoch != epoch) {
    times.epoch = epoch;
    times.start = times.end = 0;
    std::fill(times.commands.begin(), times.commands.end(), 0);
  }
  return times;
}

void Recorder::record(Traced what, std::uint64_t epoch, std::int64_t begin, std::int32_t command, std::int64_t round) {
  const std::int64_t end = now();
  // Only commands are kept. A start is recorded when the call returns, and another thread may be recording the epoch's
  // commands by then.
  if (!kept_.empty() && what == Traced::command) keep_command(epoch, begin, end, command);
  if (operation_ >= 0)
    Trace::instance().record({begin, end, round, static_cast<std::uint32_t>(epoch), operation_, command, what});
}

void Recorder::keep_command(std::uint64_t epoch, std::int64_t begin, std::int64_t end, std::int32_t command) {
  EpochTimes& times = times_of(epoch);
  if (times.start == 0 || begin < times.start) times.start = begin;
  times.end = std::max(times.end, end);
  times.commands[static_cast<std::size_t>(command)] += end - begin;
}

void Recorder::record_command(std::uint64_t epoch, std::int64_t begin, std::int64_t end, std::int32_t command) {
  if (!kept_.empty()) keep_command(epoch, begin, end, command);
  if (operation_ >= 0)
    Trace::instance().record({begin, end, 0, static_cast<std::uint32_t>(epoch), operation_, command, Traced::command});
}

TracePause::TracePause() {
  ++Trace::instance().paused;
}
TracePause::~TracePause() {
  --Trace::instance().paused;
}

void prepare_trace(const std::string& folder) {
  const auto refuse = [&folder](const std::string& why) {
    throw Error(fmt::format("TASUKI_TRACE is '{}'; it must name a folder that can be written: {}", folder, why));
  };
  make_private_folders(folder);
  std::error_code error;
  std::filesystem::create_directories(folder, error);  // `error` says why if the folder is missing after this
  if (!std::filesystem::is_directory(folder)) refuse(error ? error.message() : "it is a file");
  if (access(folder.c_str(), W_OK | X_OK) != 0) refuse("no permission");
}

void begin_trace(const std::string& folder, const Topology& topology, MPI_Comm comm) {
  Trace::instance().begin(folder, topology, comm);
}

void save_trace() {
  Trace::instance().save();
}

std::int64_t clock_offset(MPI_Comm comm, const std::function<bool(int)>& shared,
                          const std::function<std::int64_t()>& clock) {
  int rank = 0;
  int ranks = 0;
  mpi::Comm_rank(comm, &rank);
  mpi::Comm_size(comm, &ranks);
  std::int64_t told = 0;
  if (rank == 0) {
    for (int other = 1; other < ranks; ++other) {
      if (shared(other)) continue;
      for (int i = 0; i < kClockAnswers; ++i) {
        mpi::Recv(nullptr, 0, MPI_BYTE, other, 0, comm, MPI_STATUS_IGNORE);
        told = clock();
        mpi::Send(&told, 1, MPI_INT64_T, other, 0, comm);
      }
    }
    return 0;
  }
  if (shared(rank)) return 0;
  std::int64_t offset = 0;
  std::int64_t fastest = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < kClockAnswers; ++i) {
    const std::int64_t asked = clock();
    mpi::Send(nullptr, 0, MPI_BYTE, 0, 0, comm);
    mpi::Recv(&told, 1, MPI_INT64_T, 0, 0, comm, MPI_STATUS_IGNORE);
    const std::int64_t took = clock() - asked;
    if (took >= fastest) continue;
    fastest = took;
    offset = told - (asked + took / 2);  // rank 0 is taken to have read its clock half-way between question and answer
  }
  return offset;
}

}  // namespace tasuki
