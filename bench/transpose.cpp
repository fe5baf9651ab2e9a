// The transpose group: a matrix that is shared out by rows becomes one that is shared out by columns, an all-to-all in
// which each block has a layout of its own.
#include <fmt/format.h>

#include <memory>

#include "case.hpp"
#include "tasuki/memory.hpp"

namespace bench {
namespace {

double value_of(std::int64_t row, std::int64_t column, int round) {
  return static_cast<double>(row * 4096 + column) + 0.25 * round;
}

std::string verify_transpose(const TransposeCase& t, Runner& runner) {
  std::string complaint;
  const std::int64_t begin = t.context.rank() * t.share();
  for (int round = 1; round <= 3; ++round) {
    for (std::int64_t row = 0; row < t.share(); ++row)
      for (std::int64_t column = 0; column < t.size; ++column) {
        t.in[t.at_in(row, column)] = value_of(begin + row, column, round);
        t.out[t.at_out(column, row)] = -1;
      }
    runner.start();
    runner.wait();
    for (std::int64_t row = 0; row < t.size; ++row)
      for (std::int64_t column = 0; column < t.share() && complaint.empty(); ++column) {
        const double got = t.out[t.at_out(row, column)];
        if (got == value_of(row, begin + column, round)) continue;
        complaint = fmt::format("rank {}, round {}, row {}, column {}: {} instead of {}", t.context.rank(), round, row,
                                begin + column, got, value_of(row, begin + column, round));
      }
  }
  return agree(t.context, complaint);
}

Case transpose_case(int ranks, std::int64_t size, bool turned) {
  const std::int64_t bytes = 8 * size * size / ranks;
  return {"transpose", fmt::format("{} {} x {}", turned ? "transpose" : "rows to columns", size, size), bytes,
          size == 256, [=](const tasuki::Context& context) {
            auto in = tasuki::shared_alloc(context, bytes);
            auto out = tasuki::shared_alloc(context, bytes);
            const TransposeCase one{context, size, turned, reinterpret_cast<double*>(in.get()),
                                    reinterpret_cast<double*>(out.get())};
            Problem problem;
            problem.make = [one](const Peer& peer) { return peer.transpose ? peer.transpose(one) : nullptr; };
            // The memory lives as long as this function does.
            problem.verify = [one, in, out](const Peer&, Runner& runner) { return verify_transpose(one, runner); };
            return problem;
          }};
}

}  // namespace

std::vector<Case> transpose_cases(int ranks) {
  std::vector<Case> cases;
  for (const bool turned : {false, true})
    for (const std::int64_t size : {16, 64, 256, 1024, 2048})
      if (ranks > 1 && size % ranks == 0) cases.push_back(transpose_case(ranks, size, turned));
  return cases;
}

}  // namespace bench
