// The progress thread of a rank that the host imitates: it carries the messages for which kernels ask, as transport
// `mpi staged` has the process's thread do it. MPI matches them by sender, receiver, tag and order.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "gpu_view.hpp"

namespace gpu_view {

/// What MPI has been given and has not matched, of all ranks.
class ImitatedMpi {
 public:
  using Way = std::array<int, 3>;  // from, to, tag

  /// `eager`: MPI takes the bytes at once; else it leaves them where they are until they are received.
  void send(const Way& way, std::byte* at, std::size_t bytes, bool eager, bool* ended) {
    Posted posted{at, {}, bytes, eager ? nullptr : ended};
    if (eager) {
      posted.kept.assign(at, at + bytes);
      *ended = true;
    }
    sent_[way].push_back(std::move(posted));
    match(way);
  }
  void receive(const Way& way, std::byte* at, std::size_t bytes, bool* ended) {
    awaited_[way].push_back({at, {}, bytes, ended});
    match(way);
  }

 private:
  struct Posted {
    std::byte* at = nullptr;
    std::vector<std::byte> kept;  // of an eager message, which has ended for its sender
    std::size_t bytes = 0;
    bool* ended = nullptr;
  };

  void match(const Way& way) {
    auto& out = sent_[way];
    auto& in = awaited_[way];
    if (out.empty() || in.empty()) return;
    REQUIRE(out.front().bytes == in.front().bytes);
    const std::byte* const from = out.front().kept.empty() ? out.front().at : out.front().kept.data();
    std::copy(from, from + in.front().bytes, in.front().at);
    for (const Posted* one : {&out.front(), &in.front()})
      if (one->ended != nullptr) *one->ended = true;
    out.pop_front();
    in.pop_front();
  }

  std::map<Way, std::deque<Posted>> sent_;
  std::map<Way, std::deque<Posted>> awaited_;
};

class ProgressThread {
 public:
  ProgressThread(ImitatedMpi& mpi, int rank) : mpi_(mpi), rank_(rank) {}

  /// The channel of a message whose bytes are at `at`.
  std::unique_ptr<ThreadChannel> carry(const Command& c, std::byte* at) {
    const Message* behind = nullptr;
    for (const Message& other : messages_)
      if (other.command.peer == c.peer && other.command.tag == c.tag && other.command.verb == c.verb) behind = &other;
    Message& message = messages_.emplace_back();
    message.command = c;
    message.at = at;
    message.behind = behind;
    return std::make_unique<WordChannel>(message.words.data());
  }

  /// Starts a message that is asked for, or writes the word of one that has ended; false if there is none.
  bool serve(std::mt19937& random) {
    const std::size_t first = messages_.empty() ? 0 : random() % messages_.size();
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      Message& m = messages_[(first + i) % messages_.size()];
      if (m.active ? look(m) : begin(m, random)) return true;
    }
    return false;
  }

 private:
  struct Message {
    Command command;
    std::byte* at = nullptr;
    const Message* behind = nullptr;  // the one before it with the same tag
    bool active = false;
    bool ended = false;
    std::uint64_t epochs = 0;              // that have ended
    std::array<std::uint64_t, 2> words{};  // as WordChannel has them: ended, asked for
    std::uint64_t started() const { return epochs + (active ? 1 : 0); }
  };

  bool begin(Message& m, std::mt19937& random) {
    if (m.behind != nullptr && m.behind->started() <= m.epochs) return false;
    if (m.words[1] <= m.epochs * kSignal) return false;
    CHECK(m.words[1] == (m.epochs + 1) * kSignal);
    const auto bytes = static_cast<std::size_t>(m.command.bytes);
    m.active = true;
    m.ended = false;
    if (m.command.verb == Verb::send) {
      mpi_.send({rank_, m.command.peer, m.command.tag}, m.at, bytes, random() % 2 == 0, &m.ended);
    } else {
      mpi_.receive({m.command.peer, rank_, m.command.tag}, m.at, bytes, &m.ended);
    }
    return true;
  }

  static bool look(Message& m) {
    if (!m.ended) return false;
    m.active = false;
    m.words[0] = ++m.epochs * kSignal;
    return true;
  }

  ImitatedMpi& mpi_;
  int rank_;
  std::deque<Message> messages_;
};

}  // namespace gpu_view
