// See whereabouts.hpp. Who has given up asks the other nodes of its call by a message that also says where it is
// itself. The others answer from within their waits, or know from the question when they give up in turn. It tells
// those that it does not ask, too: they may wait for it in another call, and ask when it is gone.
#include "whereabouts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tasuki/wait_hooks.hpp"
#include "world.hpp"

namespace tasuki::xmp {

namespace {

constexpr int kQuestion = 1;
constexpr int kAnswer = 2;
constexpr int kGivenUp = 3;
constexpr int kMostBytes = 512;
constexpr double kDeadline = 3.0;       // seconds for the answers, where ranks share cores with others
constexpr std::size_t kMostAsked = 64;  // of very many nodes the nearest by number are asked

MPI_Comm comm = MPI_COMM_NULL;
// By rank its latest words, and in which of this rank's calls they came: those of earlier calls are of no use.
std::map<int, std::pair<std::string, std::uint64_t>> said;

std::string text_of(const Whereabouts& at) {
  if (at.call == nullptr) return "in no call of xmp.h";
  std::string text = fmt::format("in {}", at.call);
  if (at.array != nullptr && at.from != nullptr)
    text += fmt::format(" of {} to {}", *at.from, *at.array);
  else if (at.array != nullptr)
    text += fmt::format(" of {}", *at.array);
  else if (at.elements >= 0)
    text += fmt::format(" of {} element{}", at.elements, at.elements == 1 ? "" : "s");
  const std::vector<int>& ranks = (at.nodes != nullptr ? *at.nodes : world().executing()).ranks;
  constexpr std::size_t kShown = 8;
  const std::vector<int> first(ranks.begin(), ranks.begin() + std::min<std::ptrdiff_t>(std::ssize(ranks), kShown));
  text += fmt::format(" among rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(first, ", "));
  if (ranks.size() > kShown) text += fmt::format(", ... ({} ranks)", ranks.size());
  if (line_now != nullptr) text += fmt::format(", at {}", line_now);
  return text.substr(0, kMostBytes);
}

// Sent once and never waited for: the other may have ended. Few are sent in the life of a program.
void send(int rank, int tag) {
  auto text = std::make_unique<std::string>((tag == kGivenUp ? "gave up " : "") + text_of(*doing_now));
  text->resize(std::min<std::size_t>(text->size(), kMostBytes));
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Isend(text->data(), static_cast<int>(text->size()), MPI_CHAR, rank, tag, comm, &request);
  MPI_Request_free(&request);
  static_cast<void>(text.release());  // MPI may still read it
}

bool take(int tag, int& from) {
  int there = 0;
  MPI_Status status;
  if (MPI_Iprobe(MPI_ANY_SOURCE, tag, comm, &there, &status) != MPI_SUCCESS || there == 0) return false;
  std::vector<char> text(kMostBytes);
  MPI_Recv(text.data(), kMostBytes, MPI_CHAR, status.MPI_SOURCE, tag, comm, &status);
  int bytes = 0;
  MPI_Get_count(&status, MPI_CHAR, &bytes);
  from = status.MPI_SOURCE;
  said[from] = {std::string(text.data(), static_cast<std::size_t>(bytes)), calls_made};
  return true;
}

void look(void* /*token*/) {
  answer();
}

// The nearest of them.
std::vector<int> nearest(std::vector<int> ranks) {
  const int mine = world().rank();
  std::erase(ranks, mine);
  if (ranks.size() <= kMostAsked) return ranks;
  std::sort(ranks.begin(), ranks.end(), [mine](int a, int b) { return std::abs(a - mine) < std::abs(b - mine); });
  ranks.resize(kMostAsked);
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::vector<int> asked() {
  return nearest((doing_now->nodes != nullptr ? *doing_now->nodes : world().executing()).ranks);
}

std::vector<int> not_asked(const std::vector<int>& asked) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank)
    if (std::find(asked.begin(), asked.end(), rank) == asked.end()) ranks.push_back(rank);
  return nearest(std::move(ranks));
}

}  // namespace

void start_answers(MPI_Comm over) {
  comm = over;
  set_wait_hooks({.begin = nullptr, .look = look, .end = nullptr});
}

void end_answers() {
  set_wait_hooks({});
  comm = MPI_COMM_NULL;
  said.clear();
}

void answer() {
  if (comm == MPI_COMM_NULL) return;
  int from = 0;
  while (take(kQuestion, from)) send(from, kAnswer);
}

std::string whereabouts_of_all() {
  if (comm == MPI_COMM_NULL || doing_now->call == nullptr) return {};
  using Clock = std::chrono::steady_clock;
  const std::vector<int> others = asked();
  if (others.empty()) return {};
  for (int late = 0; take(kAnswer, late);) said.erase(late);  // to an earlier question
  for (const int rank : others) send(rank, kQuestion);
  for (const int rank : not_asked(others)) send(rank, kGivenUp);
  std::map<int, bool> answered;
  const auto begin = Clock::now();
  const auto waiting = [&] {
    const std::chrono::duration<double> waited = Clock::now() - begin;
    return waited.count() < kDeadline &&
           std::any_of(others.begin(), others.end(), [&](int rank) { return !answered[rank]; });
  };
  while (waiting()) {
    int from = 0;
    // A question is an answer too: who asks may be gone before it hears ours.
    if (take(kQuestion, from)) {
      send(from, kAnswer);
      answered[from] = true;
    }
    if (take(kAnswer, from)) answered[from] = true;
    sched_yield();
  }
  // Of those that are silent, the call in which they have given up.
  const auto heard = said;
  for (int from = 0; take(kGivenUp, from);)
    if (answered[from]) said[from] = heard.at(from);
  // Ranks that are in the same call are named together, in the order of the first of each.
  std::vector<std::pair<std::string, std::vector<int>>> groups{{text_of(*doing_now), {world().rank()}}};
  for (const int rank : others) {
    const auto found = said.find(rank);
    const bool known = found != said.end() && found->second.second == calls_made;
    const std::string text = known ? found->second.first : "waits in no call of xmp.h";
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& one) { return one.first == text; });
    if (group == groups.end()) group = groups.insert(groups.end(), {text, {}});
    group->second.push_back(rank);
  }
  constexpr std::size_t kMostGroups = 8;
  std::string all;
  for (std::size_t i = 0; i < std::min(groups.size(), kMostGroups); ++i) {
    auto& [text, ranks] = groups[i];
    std::sort(ranks.begin(), ranks.end());
    all +=
        fmt::format("{}rank{} {}: {}", i == 0 ? "" : "; ", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "), text);
  }
  return groups.size() > kMostGroups ? all + fmt::format("; and {} more", groups.size() - kMostGroups) : all;
}

}  // namespace tasuki::xmp
