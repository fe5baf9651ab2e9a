// Boxes of a case gathered into messages.
#include "gpu/messages.hpp"

#include <algorithm>

namespace bench {
namespace {

PackedMessage::Box box_of(const GpuCase& problem, const GpuMove& move, bool source) {
  const tasuki::FieldBase& field = problem.fields[static_cast<std::size_t>(move.field)];
  const GpuRows rows = rows_of(field, source ? move.from : move.to);
  return {field.raw(problem.copy) + rows.offset, rows};
}

}  // namespace

void PackedMessage::add_copies(std::byte* packed_at, std::vector<StridedCopy>& copies) const {
  for (const Box& box : boxes) {
    if (sends) {
      copies.push_back({box.at, packed_at, box.rows, packed(box.rows)});
    } else {
      copies.push_back({packed_at, box.at, packed(box.rows), box.rows});
    }
    packed_at += aligned_to_16(box.rows.bytes());
  }
}

std::vector<PackedMessage> messages_of(const GpuCase& problem) {
  const int me = problem.context.rank();
  std::vector<PackedMessage> messages;
  for (int peer = 0; peer < problem.context.size(); ++peer) {
    if (peer == me) continue;
    for (const bool sends : {true, false}) {
      PackedMessage message;
      message.peer = peer;
      message.sends = sends;
      for (const GpuMove& move : problem.moves) {
        if (move.source != (sends ? me : peer) || move.target != (sends ? peer : me)) continue;
        message.boxes.push_back(box_of(problem, move, sends));
        message.bytes += aligned_to_16(message.boxes.back().rows.bytes());
      }
      if (message.boxes.empty()) continue;
      // Also where one side is contiguous and the other is not, both know the same length.
      if (message.boxes.size() == 1) message.bytes = message.boxes[0].rows.bytes();
      messages.push_back(message);
    }
  }
  return messages;
}

std::vector<StridedCopy> local_copies(const GpuCase& problem) {
  const int me = problem.context.rank();
  std::vector<StridedCopy> copies;
  for (const GpuMove& move : problem.moves) {
    if (move.source != me || move.target != me) continue;
    const PackedMessage::Box from = box_of(problem, move, true);
    const PackedMessage::Box to = box_of(problem, move, false);
    copies.push_back({from.at, to.at, from.rows, to.rows});
  }
  return copies;
}

bool all_local(const GpuCase& problem) {
  const bool here = std::all_of(problem.moves.begin(), problem.moves.end(),
                                [](const GpuMove& move) { return move.source == move.target; });
  return everywhere(problem.context, here);
}

}  // namespace bench
