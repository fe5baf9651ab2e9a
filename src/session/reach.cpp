// Reach: see reach.hpp. One AND over all ranks suffices if /proc works for every rank. Otherwise the ranks of a host
// exchange what they can map.
#include "session/reach.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>

#include "memory/hand_over.hpp"
#include "session/wait_clock.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

constexpr const char* kDoing = "finding out who can map whose memory";

/// One rank's side of the exchange: tells its neighbours what it can map, and hands over descriptors.
class Opening {
 public:
  Opening(Communicator& communicator, SharedMemory& memory, std::span<const int> neighbours,
          std::span<const SharedIdentity> identities)
      : communicator_(communicator), memory_(memory), neighbours_(neighbours), identities_(identities) {
    for (std::size_t i = 0; i < neighbours_.size(); ++i) {
      if (neighbours_[i] == communicator_.rank()) me_ = i;
      if (neighbours_[i] != communicator_.rank()) others_.push_back(neighbours_[i]);
    }
  }

  /// Opens all neighbours' files through /proc. True if that worked for all.
  bool by_proc() {
    bool all = true;
    for (std::size_t i = 0; i < neighbours_.size(); ++i)
      if (i != me_) all = memory_.open(neighbours_[i], identities_[i]).empty() && all;
    return all;
  }

  void by_hand_over() {
    std::string why;
    try {
      mailbox_ = std::make_unique<HandOver>(memory_.identity().mailbox);
    } catch (const Error& error) {
      why = error.what();  // the others cannot send to this rank then, and will notice
    }
    const auto seen = rows();  // a barrier too: all mailboxes exist from here on
    std::vector<std::string> answers(others_.size());
    std::vector<bool> waits(neighbours_.size(), false);
    for (std::size_t i = 0; i < neighbours_.size(); ++i) waits[i] = i != me_ && !seen[i][me_];
    hand_over(waits, why);
    for (std::size_t o = 0, i = 0; i < neighbours_.size(); ++i)
      if (i != me_) answers[o++] = refusals_[i];
    answers = exchange_now(communicator_, others_, answers, kDoing, [this] { take(); });
    take();  // a neighbour sends its descriptor before its answer, so all are in the mailbox now
    for (std::size_t o = 0, i = 0; i < neighbours_.size(); ++i) {
      if (i == me_) continue;
      const std::string& answer = answers[o++];
      const std::string before = memory_.why_not(neighbours_[i]);
      if (!before.empty() && !answer.empty()) memory_.refuse(neighbours_[i], fmt::format("{}; {}", before, answer));
    }
  }

  /// Collects from every neighbour whom it can map: one row each.
  std::vector<std::vector<bool>> rows() {
    std::string own;
    for (const int neighbour : neighbours_) own += memory_.why_not(neighbour).empty() ? '1' : '0';
    const std::vector<std::string> texts(others_.size(), own);
    auto answers = exchange_now(communicator_, others_, texts, kDoing);
    answers.insert(answers.begin() + static_cast<std::ptrdiff_t>(me_), own);
    std::vector<std::vector<bool>> all;
    for (const std::string& row : answers) {
      if (row.size() != neighbours_.size())
        throw Error(ErrorKind::system,
                    fmt::format("Context: rank {}: {}: the ranks of a host do not agree who they are",
                                communicator_.rank(), kDoing));
      auto& bits = all.emplace_back();
      for (const char bit : row) bits.push_back(bit == '1');
    }
    return all;
  }

 private:
  /// Sends this rank's descriptor to the neighbours that need it.
  void hand_over(std::vector<bool> waits, const std::string& no_mailbox) {
    refusals_.assign(neighbours_.size(), "");
    const double seconds = communicator_.making_deadline();
    WaitClock clock;
    const SharedIdentity own = memory_.identity();
    for (bool more = true; more; sched_yield()) {
      more = false;
      const bool late = clock.read() > seconds;
      for (std::size_t i = 0; i < waits.size(); ++i) {
        if (!waits[i]) continue;
        std::string why = no_mailbox;
        const auto sent =
            mailbox_ == nullptr ? HandOver::Sent::no : mailbox_->send(identities_[i].mailbox, own.token, own.fd, why);
        if (sent == HandOver::Sent::no) refusals_[i] = why;
        if (sent == HandOver::Sent::full && late) refusals_[i] = "its mailbox stays full";
        waits[i] = sent == HandOver::Sent::full && !late;
        more = more || waits[i];
      }
      take();  // keeps this mailbox from being full, which others wait for
    }
  }

  /// Takes over the descriptors that have arrived.
  void take() {
    while (mailbox_ != nullptr) {
      const auto letter = mailbox_->receive();
      if (!letter) return;
      const auto from = std::ranges::find(identities_, letter->token, &SharedIdentity::token);
      const auto i = static_cast<std::size_t>(from - identities_.begin());
      if (from == identities_.end() || i == me_) {
        close(letter->fd);  // the token belongs to no neighbour
      } else {
        memory_.adopt(neighbours_[i], *from, letter->fd);
      }
    }
  }

  Communicator& communicator_;
  SharedMemory& memory_;
  std::span<const int> neighbours_;
  std::span<const SharedIdentity> identities_;
  std::size_t me_ = 0;
  std::vector<int> others_;
  std::unique_ptr<HandOver> mailbox_;
  std::vector<std::string> refusals_;  // why this rank's file could not be given to a neighbour
};

}  // namespace

std::vector<std::size_t> groups_of(const std::vector<std::vector<bool>>& reaches) {
  std::vector<std::vector<std::size_t>> groups;
  std::vector<std::size_t> first;
  for (std::size_t one = 0; one < reaches.size(); ++one) {
    const auto home = std::ranges::find_if(groups, [&](const auto& group) {
      return std::ranges::all_of(group, [&](std::size_t other) { return reaches[one][other] && reaches[other][one]; });
    });
    auto& group = home == groups.end() ? groups.emplace_back() : *home;
    group.push_back(one);
    first.push_back(group.front());
  }
  return first;
}

std::vector<int> open_neighbours(Communicator& communicator, SharedMemory& memory, std::span<const int> neighbours,
                                 std::span<const SharedIdentity> identities) {
  Opening opening(communicator, memory, neighbours, identities);
  const std::uint64_t mine = opening.by_proc() ? 1 : 0;
  std::vector<int> groups(neighbours.size(), neighbours.front());
  if (combine_now(communicator, {mine}, kDoing)[0] != 0) return groups;
  opening.by_hand_over();
  const auto first = groups_of(opening.rows());
  std::size_t me = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    groups[i] = neighbours[first[i]];
    if (neighbours[i] == communicator.rank()) me = i;
  }
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first[i] == first[me] || !memory.why_not(neighbours[i]).empty()) continue;
    memory.refuse(neighbours[i], fmt::format("not all ranks from {} on can map each other's memory", groups[me]));
  }
  return groups;
}

}  // namespace tasuki
