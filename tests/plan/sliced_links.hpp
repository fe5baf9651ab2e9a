// Links that go as several messages, at random, and the plans of two ranks that exchange them.
#pragma once

#include <array>
#include <cstddef>
#include <random>
#include <vector>

#include "protocols/message.hpp"

namespace sliced_links {

using namespace tasuki;

/// The protocol of messages, of at most `most` bytes each.
struct Sliced {
  Constants constants;
  MessageProtocol protocol;
  Sliced(Home home, std::int64_t most) : protocol(home, MessageProtocol::Cut::limit) { constants.message_most = most; }
};

inline StridedCopy random_copy(std::mt19937& random, std::int64_t element) {
  StridedCopy copy;
  copy.block = element * static_cast<std::int64_t>(1 + random() % (random() % 4 == 0 ? 300 : 9));
  copy.ndims = static_cast<std::int32_t>(copy.block > 9 * element ? random() % 2 : random() % 4);
  std::int64_t src = copy.block;
  std::int64_t dst = copy.block;
  for (int d = copy.ndims - 1; d >= 0; --d) {
    const auto count = static_cast<std::int64_t>(1 + random() % 8);
    auto& dim = copy.dims[static_cast<std::size_t>(d)];
    dim = {count, src + element * static_cast<std::int64_t>(random() % 3), dst};
    src = dim.src_stride * count;
    dst = dim.dst_stride * count;
  }
  return copy;
}

// Moves one behind the other: from buffer to buffer, each with copies of its own.
inline std::vector<Move> random_moves(std::mt19937& random, std::int64_t element, DType add) {
  std::vector<Move> moves(1 + random() % 4);
  std::int64_t src = 0;
  std::int64_t dst = 0;
  for (Move& move : moves) {
    move.add = add;
    for (auto k = random() % 3; k < 3; ++k) {
      StridedCopy copy = random_copy(random, element);
      copy.src_offset = src;
      copy.dst_offset = dst;
      src += copy.block;
      dst += copy.bytes();
      for (int d = 0; d < copy.ndims; ++d) {
        const auto& dim = copy.dims[static_cast<std::size_t>(d)];
        src += (dim.count - 1) * dim.src_stride;
      }
      move.copies.push_back(copy);
    }
  }
  return moves;
}

inline Link link_of(const Constants& constants, const std::vector<Move>& moves, int peer, int src, int dst) {
  Link link;
  link.constants = &constants;
  link.peer = peer;
  for (const Move& move : moves) {
    link.moves.push_back(&move);
    link.src.push_back(src);
    link.dst.push_back(dst);
  }
  link.capacity = link.bytes();
  return link;
}

inline constexpr std::int64_t kRoom = 2 << 20;

inline std::vector<std::byte> noise(std::mt19937& random) {
  std::vector<std::byte> bytes(kRoom);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// One rank's plan: what comes from the other, then what goes there; or in `rounds` of a chunk loop.
inline Plan plan_of(const Sliced& sliced, int rank, const std::array<std::vector<Move>, 2>& sent,
                    std::int64_t rounds = 1) {
  const int peer = 1 - rank;
  const auto mine = static_cast<std::size_t>(rank);
  const auto theirs = static_cast<std::size_t>(peer);
  Builder builder("slices", rank, 2);
  builder.set_path("sliced");
  const std::array<int, 2> from{builder.buffer("from", 0, Role::input, kRoom),
                                builder.buffer("from", 1, Role::input, kRoom)};
  const std::array<int, 2> to{builder.buffer("to", 0, Role::inout, kRoom), builder.buffer("to", 1, Role::inout, kRoom)};
  Link in = link_of(sliced.constants, sent[theirs], peer, from[theirs], to[mine]);
  Link out = link_of(sliced.constants, sent[mine], peer, from[mine], to[theirs]);
  for (Link* link : {&in, &out}) {
    link->capacity *= rounds;
    builder.begin_lane();
    if (rounds > 1) builder.begin_loop(rounds, kRoom / rounds);
    link == &in ? sliced.protocol.recv(builder, in) : sliced.protocol.send(builder, out);
    if (rounds > 1) builder.end_loop();
  }
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (Move move : sent[theirs]) {
      for (StridedCopy& copy : move.copies) {
        copy.src_offset += round * kRoom / rounds;
        copy.dst_offset += round * kRoom / rounds;
      }
      builder.expect(from[theirs], to[mine], move.copies, move.add);
    }
  }
  return builder.finish();
}

}  // namespace sliced_links
