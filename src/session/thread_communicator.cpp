// The communicator of ranks that are threads of one process: they exchange texts through their `Team`.
#include <fmt/format.h>

#include <algorithm>

#include "layout/encoding.hpp"
#include "session/team.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

void Team::post(std::uint64_t call, const std::string& kind, int rank, const std::string& text) {
  const std::lock_guard lock(mutex_);
  Call& entry = calls_[call];
  if (entry.posted == 0) {
    entry.kind = kind;
    entry.first = rank;
    entry.texts.resize(static_cast<std::size_t>(ranks_));
  }
  if (entry.kind != kind)
    throw Error(
        ErrorKind::disagreement,
        fmt::format("the ranks do different things: rank {} {}, rank {} {}; all ranks of a context must make the same "
                    "collective calls in the same order",
                    entry.first, entry.kind, rank, kind));
  entry.texts[static_cast<std::size_t>(rank)] = text;
  ++entry.posted;
}

bool Team::take(std::uint64_t call, std::vector<std::string>& texts) {
  const std::lock_guard lock(mutex_);
  const auto entry = calls_.find(call);
  if (entry->second.posted < ranks_) return false;
  texts = entry->second.texts;
  if (++entry->second.taken == ranks_) calls_.erase(entry);
  return true;
}

void Team::send(int from, int to, const std::string& text) {
  const std::lock_guard lock(mutex_);
  letters_[{from, to}].push_back(text);
}

bool Team::receive(int from, int to, std::string& text) {
  const std::lock_guard lock(mutex_);
  auto& letters = letters_[{from, to}];
  if (letters.empty()) return false;
  text = std::move(letters.front());
  letters.pop_front();
  return true;
}

std::shared_ptr<Team> Team::part(const std::vector<int>& ranks, int number) {
  const std::lock_guard lock(mutex_);
  const auto entry = parts_.try_emplace({ranks, number}).first;
  Part& part = entry->second;
  if (part.team == nullptr) part.team = std::make_shared<Team>(static_cast<int>(ranks.size()));
  std::shared_ptr<Team> team = part.team;
  if (++part.taken == ranks.size()) parts_.erase(entry);
  return team;
}

void Team::fail(int rank, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (failed_ >= 0) return;
  failed_ = rank;
  why_ = fmt::format("rank {} gave up because {}", rank, why);
}

int Team::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

std::string Team::why() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

namespace {

class Collective : public Pending {
 public:
  Collective(std::shared_ptr<Team> team, std::uint64_t call) : team_(std::move(team)), call_(call) {}
  bool ended() override {
    done_ = done_ || team_->take(call_, texts);
    return done_;
  }

 private:
  std::shared_ptr<Team> team_;
  std::uint64_t call_;
  bool done_ = false;
};

class Combined final : public Collective {
 public:
  Combined(std::shared_ptr<Team> team, std::uint64_t call, std::size_t count) : Collective(std::move(team), call) {
    words.assign(count, ~std::uint64_t{0});
  }
  bool ended() override {
    if (!Collective::ended()) return false;
    for (const std::string& text : texts) {
      const auto theirs = Decoder(text).records<std::uint64_t>();
      if (theirs.size() != words.size()) throw Malformed("the ranks combine different numbers of words");
      for (std::size_t w = 0; w < words.size(); ++w) words[w] &= theirs[w];
    }
    return true;
  }
};

class Swap final : public Pending {
 public:
  Swap(std::shared_ptr<Team> team, int rank, std::span<const int> peers)
      : team_(std::move(team)), rank_(rank), peers_(peers.begin(), peers.end()) {
    texts.reserve(peers_.size());
  }
  bool ended() override {
    std::string text;
    while (texts.size() < peers_.size() && team_->receive(peers_[texts.size()], rank_, text)) texts.push_back(text);
    return texts.size() == peers_.size();
  }

 private:
  std::shared_ptr<Team> team_;
  int rank_;
  std::vector<int> peers_;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<Team> team, int rank) : team_(std::move(team)) {
    rank_ = rank;
    size_ = team_->ranks();
  }
  ThreadCommunicator(std::shared_ptr<Team> team, int rank, double seconds) : ThreadCommunicator(std::move(team), rank) {
    making_deadline_ = seconds;
  }

  std::unique_ptr<Pending> gather(const std::string& text) override {
    team_->post(++calls_, "gathers texts", rank_, text);
    return std::make_unique<Collective>(team_, calls_);
  }

  std::unique_ptr<Pending> combine(const std::vector<std::uint64_t>& words) override {
    team_->post(++calls_, fmt::format("combines {} words", words.size()), rank_,
                Encoder().records(std::span<const std::uint64_t>(words)).bytes());
    return std::make_unique<Combined>(team_, calls_, words.size());
  }

  std::unique_ptr<Pending> exchange(std::span<const int> peers, std::span<const std::string> texts) override {
    for (std::size_t i = 0; i < peers.size(); ++i) team_->send(rank_, peers[i], texts[i]);
    return std::make_unique<Swap>(team_, rank_, peers);
  }

  std::unique_ptr<Communicator> part(std::span<const int> ranks, int number, double seconds) override {
    const std::vector<int> all(ranks.begin(), ranks.end());
    const auto place = std::ranges::find(all, rank_) - all.begin();
    return std::make_unique<ThreadCommunicator>(team_->part(all, number), static_cast<int>(place), seconds);
  }

  bool running() const override { return true; }
  void abandon(const std::string& why) override { team_->fail(rank_, why); }
  std::string broken() override { return team_->why(); }

 private:
  std::shared_ptr<Team> team_;
  std::uint64_t calls_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> communicator_of(std::shared_ptr<Team> team, int rank) {
  return std::make_unique<ThreadCommunicator>(std::move(team), rank);
}

}  // namespace tasuki
