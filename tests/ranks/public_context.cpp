// What programs that embed Tasuki use of a context: agreement, giving up, identity, and calls on this process's GPUs.
#include <doctest/doctest.h>
#include <mpi.h>

#include <string>
#include <vector>

#include "error_of.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

TEST_CASE("ranks agree, or all of them throw the complaint of one or the difference between two") {
  Context ctx(MPI_COMM_WORLD);
  for (int turn = 0; turn < 3; ++turn) ctx.agree("turning", {{"turn", std::to_string(turn)}, {"way", "left"}});
  const int last = ctx.size() - 1;
  const std::string complaint = error_of([&] {
    ctx.agree("turning", {{"turn", "4"}}, ctx.rank() == last ? "no way out" : "");
  });
  CHECK(complaint.find("turning") != std::string::npos);
  CHECK(complaint.find("rank " + std::to_string(last)) != std::string::npos);
  CHECK(complaint.find("no way out") != std::string::npos);
  if (ctx.size() == 1) return;
  const std::string difference = error_of([&] { ctx.agree("turning", {{"turn", std::to_string(ctx.rank() / last)}}); });
  CHECK(difference.find("argument 'turn' differs between ranks: rank 0 has 0, rank " + std::to_string(last) +
                        " has 1") != std::string::npos);
  ctx.agree("turning", {});
}

TEST_CASE("some of the ranks agree among themselves, and the others do nothing or have a complaint of their own") {
  Context ctx(MPI_COMM_WORLD);
  const int last = ctx.size() - 1;
  const std::vector<int> sides{last, 0};
  const bool side = ctx.rank() == 0 || ctx.rank() == last;
  const auto agree = [&](const std::string& value, const std::string& complaint) {
    return error_of([&] { ctx.agree("turning", {{"way", value}}, complaint, sides); });
  };
  if (side) CHECK(agree("left", "") == "no error");  // the others do not even call it
  CHECK(agree("left", "") == "no error");
  const std::string mine = ctx.rank() == last ? "no way out" : "";
  CHECK(agree("left", mine) == (side ? "turning: rank " + std::to_string(last) + ": no way out" : "no error"));
  if (!side) CHECK(agree("", "mine") == "turning: rank " + std::to_string(ctx.rank()) + ": mine");
  if (side && last > 0)
    CHECK(agree(ctx.rank() == 0 ? "left" : "right", "") ==
          "turning: argument 'way' differs between ranks: rank 0 has left, rank " + std::to_string(last) +
              " has right");
  const std::vector<int> nobody{ctx.size()};
  CHECK(error_of([&] { ctx.agree("turning", {}, "", nobody); }).find("but the context has ranks 0 to") !=
        std::string::npos);
  ctx.barrier();
}

TEST_CASE("a rank that gives up ends the others' waits with its reason") {
  Context ctx(MPI_COMM_WORLD);
  MPI_Barrier(ctx.comm());  // a rank that is still making the context would hear of it there
  if (ctx.size() == 1) return;
  if (ctx.rank() == 0) {
    ctx.give_up("rank 0 has had enough");
  } else {
    CHECK(error_of([&] { ctx.barrier(); }).find("rank 0 has had enough") != std::string::npos);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("copies of a context have one identity, other contexts another") {
  Context ctx(MPI_COMM_WORLD);
  const Context copy = ctx;
  Context other(ctx.comm());
  CHECK(copy.id() == ctx.id());
  CHECK(other.id() != ctx.id());
}

TEST_CASE("without a GPU the calls on one say why, and with one they do what they say") {
  Context ctx(MPI_COMM_WORLD);
  CHECK(!uses_gpu(ctx));
  int from = 7 + ctx.rank();
  int to = 0;
  if (!why_no_gpu().empty()) {
    for (const std::string& error : {error_of([] { current_gpu(); }), error_of([] { select_gpu(0); }),
                                     error_of([&] { copy_bytes(&to, &from, sizeof to); })})
      CHECK(error.find(why_no_gpu()) != std::string::npos);
    CHECK(to == 0);
  } else {
    select_gpu(current_gpu());
    CHECK(error_of([] { select_gpu(-1); }).find("'ordinal' is -1") != std::string::npos);
    copy_bytes(&to, &from, sizeof to);
    CHECK(to == from);
  }
  CHECK(error_of([&] { copy_bytes(&to, &from, -1); }).find("'bytes' is -1") != std::string::npos);
}
