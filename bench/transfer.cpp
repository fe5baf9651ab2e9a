// The transfer group: a block of columns of a matrix from rank 0 to rank 1 and back.
#include <fmt/format.h>

#include <memory>

#include "case.hpp"
#include "tasuki/memory.hpp"

namespace bench {
namespace {

constexpr std::int64_t kRows = 4096;       // of the matrix
constexpr std::int64_t kFirstColumn = 8;   // of the block: not at the start of a row
constexpr std::int64_t kBackColumn = 136;  // of the block that comes back
constexpr std::int64_t kMargin = 4;        // columns left and right of a block that must not change

double value_of(std::int64_t row, std::int64_t column, int round) {
  return static_cast<double>((row * 64 + column) * 1000 + round);
}

// Calls `f(element, value it should have had)` for the block and, with value -1, for the margins.
template <class F>
void for_all_elements(const TransferCase& t, double* block, int round, F&& f) {
  for (std::int64_t row = 0; row < t.rows; ++row) {
    for (std::int64_t column = -kMargin; column < t.columns + kMargin; ++column) {
      const bool inside = column >= 0 && column < t.columns;
      f(block[row * t.stride + column], inside ? value_of(row, column, round) : -1);
    }
  }
}

std::string verify_transfer(const TransferCase& t, const Peer& peer, Runner& runner) {
  std::string complaint;
  const int rank = t.context.rank();
  const auto fill = [&](double* block, int round) {
    for_all_elements(t, block, round, [](double& at, double value) { at = value; });
  };
  const auto blank = [&](double* block) { for_all_elements(t, block, 0, [](double& at, double) { at = -1; }); };
  const auto check = [&](double* block, int round, const char* what) {
    for_all_elements(t, block, round, [&](const double& at, double value) {
      if (at == value || !complaint.empty()) return;
      complaint = fmt::format("rank {}, round {}, block {}: {} instead of {}", rank, round, what, at, value);
    });
  };
  double* const there = peer.solo ? t.scratch : rank == 1 ? t.block : nullptr;
  for (int round = 1; round <= 3; ++round) {
    if (rank == 0) fill(t.block, round);
    if (rank == 0) blank(t.back);
    if (there != nullptr) blank(there);
    runner.start();
    runner.wait();
    if (there != nullptr) check(there, round, "sent");
    if (rank == 0) check(t.back, round, "sent back");
  }
  return agree(t.context, complaint);
}

Problem problem_of(const tasuki::Context& context, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
  TransferCase transfer{context, rows, columns, stride};
  const auto matrix = tasuki::shared_alloc(context, context.rank() < 2 ? kRows * stride * 8 : 0);
  const auto second = std::make_shared<std::vector<double>>(context.rank() == 0 ? kRows * stride : 0);
  if (context.rank() < 2) transfer.block = reinterpret_cast<double*>(matrix.get()) + kFirstColumn;
  if (context.rank() == 0) {
    transfer.back = transfer.block + (kBackColumn - kFirstColumn);
    transfer.scratch = second->data() + kFirstColumn;
  }
  Problem problem;
  problem.make = [transfer](const Peer& peer) { return peer.transfer ? peer.transfer(transfer) : nullptr; };
  // The matrices live as long as this function does.
  problem.verify = [transfer, matrix, second](const Peer& peer, Runner& runner) {
    return verify_transfer(transfer, peer, runner);
  };
  problem.iterations_per_run = 2;
  return problem;
}

}  // namespace

std::vector<Case> transfer_cases(int ranks) {
  std::vector<Case> cases;
  if (ranks < 2) return cases;
  for (const std::int64_t columns : {1, 16}) {
    for (const std::int64_t stride : {256, 1024, 4096}) {
      for (const std::int64_t rows : {16, 64, 256, 1024, 4096}) {
        const bool quick = stride == 1024 && (rows == 64 || rows == 4096);
        cases.push_back({"transfer", fmt::format("{} x {} of 4096 x {}", rows, columns, stride), rows * columns * 8,
                         quick,
                         [=](const tasuki::Context& context) { return problem_of(context, rows, columns, stride); }});
      }
    }
  }
  return cases;
}

}  // namespace bench
