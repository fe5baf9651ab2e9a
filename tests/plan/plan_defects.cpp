// One defect planted in a sound plan at a time: the verifier must name the ranks, commands and buffers concerned.
#include <doctest/doctest.h>

#include <algorithm>

#include "plan_samples.hpp"
#include "tasuki/error.hpp"

using namespace tasuki;
using samples::tells;

namespace {

/// Takes a command out without moving the others.
void drop(Plan& plan, std::int32_t command) {
  samples::idle(plan, command);
}

StridedCopy& copy_of(Plan& plan, std::int32_t command) {
  return plan.copies[plan.commands[command].first_copy];
}

}  // namespace

TEST_CASE("a put that does not wait for ready overwrites what the neighbour's user reads") {
  auto plans = samples::put_halo(3);
  drop(plans[0], 0);
  const auto report = verify(plans);
  CHECK(tells(report, {"rank 0 #1 put -> 1 writes 32 bytes of 'p' of rank 1 (from offset 0, epoch 2)",
                       "the user of rank 1 after epoch 1 reads"}));
  CHECK(tells(report, {"rank 1 #3 signal ready right -> 0", "for which nobody waits"}));
}

TEST_CASE("a signal before its put lets the user read too early") {
  auto plans = samples::put_halo(2);
  std::swap(plans[1].commands[1], plans[1].commands[2]);
  CHECK(tells(verify(plans),
              {"the user of rank 0 after epoch 1 reads 32 bytes of 'p' of rank 0", "rank 1 #2 put -> 0 writes"}));
}

TEST_CASE("a user that does not wait for arrival reads too early") {
  auto plans = samples::put_halo(3);
  drop(plans[2], 4);
  const auto report = verify(plans);
  CHECK(tells(report, {"'p' of rank 2", "rank 1 #1 put -> 2", "nothing orders"}));
  CHECK(tells(report, {"rank 1 #2 signal arrived right -> 2", "for which nobody waits"}));
}

TEST_CASE("bytes that nothing writes are missed") {
  auto plans = samples::put_halo(3);
  copy_of(plans[0], 1).dims[0].count = 3;
  plans[0].commands[1].bytes = 24;
  CHECK(tells(verify(plans), {"rank 1 expect 0: 8 bytes of 'p' of rank 1 (from offset 144, epoch 1)",
                              "should come from 'p' of rank 0 offset 176", "nothing writes them"}));
}

TEST_CASE("a byte written twice, in order, is still one time too many") {
  auto plans = samples::put_halo(2);
  plans[0].commands.insert(plans[0].commands.begin() + 1, plans[0].commands[1]);
  CHECK(
      tells(verify(plans), {"rank 0 #2 put -> 1 writes 32 bytes of 'p' of rank 1", "a second time, after rank 0 #1"}));
}

TEST_CASE("swapped faces arrive from the wrong cells") {
  auto plans = samples::put_halo(3);
  std::swap(copy_of(plans[0], 1).src_offset, copy_of(plans[0], 6).src_offset);
  const auto report = verify(plans);
  CHECK(tells(report, {"rank 1 expect 0: 32 bytes", "should come from 'p' of rank 0 offset 32",
                       "rank 0 #1 put -> 1 puts 'p' of rank 0 offset 8 there"}));
  CHECK(tells(report, {"rank 2 expect 1: 32 bytes", "rank 0 #6 put -> 2 puts 'p' of rank 0 offset 32 there"}));
}

TEST_CASE("cells that the user never gave are told as such") {
  auto plans = samples::put_halo(2);
  copy_of(plans[0], 1).src_offset = 3 * samples::kCell;
  CHECK(tells(verify(plans), {"rank 1 expect 0", "rank 0 #1 put -> 1 puts bytes that nobody wrote there"}));
}

TEST_CASE("a put beyond the promise overwrites the user's cells") {
  auto plans = samples::put_halo(3);
  copy_of(plans[0], 1).block = 16;
  plans[0].commands[1].bytes = 64;
  CHECK(tells(verify(plans), {"rank 0 #1 put -> 1 writes 32 bytes of 'p' of rank 1 (from offset 8", "no expectation"}));
}

TEST_CASE("a send without a receive is told, and who waits for it") {
  auto plans = samples::message_halo(3);
  drop(plans[1], 2);
  const auto report = verify(plans);
  CHECK(tells(report, {"rank 0 sends 1 messages with tag 0 to rank 1", "rank 0 #1 send -> 1", "rank 1 receives 0"}));
  CHECK(tells(report, {"rank 0 #1 send -> 1 waits for ever in epoch 1", "rank 1 has no recv left"}));
}

TEST_CASE("a receive without a send is told, and who waits for it") {
  auto plans = samples::message_halo(2);
  drop(plans[0], 5);
  CHECK(tells(verify(plans), {"rank 1 #6 recv <- 0 waits for ever in epoch 1", "rank 0 has no send left"}));
}

TEST_CASE("a message and its receive must have equal sizes") {
  for (const std::int64_t bytes : {24, 32}) {
    auto plans = samples::message_halo(3);
    plans[0].commands[1].bytes = bytes;
    plans[1].commands[2].bytes = 56 - bytes;
    CHECK(tells(verify(plans), {"rank 0 #1 send -> 1 has " + std::to_string(bytes),
                                "meets rank 1 #2 recv <- 0 of " + std::to_string(56 - bytes)}));
  }
}

TEST_CASE("messages of one tag from two lanes must be ordered") {
  auto plans = samples::message_halo(2);
  for (Plan& plan : plans) {
    for (Command& command : plan.commands) command.tag = 0;
  }
  CHECK(tells(verify(plans),
              {"rank 0 #1 send -> 1 and rank 0 #5 send -> 1 both send to rank 1 with tag 0", "nothing orders"}));
}

TEST_CASE("crossing waits on two ranks are a deadlock, and the cycle is printed") {
  auto plans = samples::put_halo(2);
  for (Plan& plan : plans) {
    // Everything of direction 0 in one lane, arrival first.
    std::rotate(plan.commands.begin(), plan.commands.begin() + 4, plan.commands.begin() + 5);
    for (int i = 0; i < 5; ++i) plan.commands[i].lane = 0;
  }
  const auto report = verify(plans);
  CHECK(tells(
      report,
      {"deadlock in epoch 1",
       "rank 0 #0 wait arrived right needs rank 1 #3 signal arrived right -> 0 behind rank 1 #0 wait arrived right",
       "rank 1 #0 wait arrived right needs rank 0 #3 signal arrived right -> 1"}));
}

TEST_CASE("sends that only buffering would save are a deadlock") {
  auto plans = samples::message_halo(2);
  for (Plan& plan : plans) {
    for (int i = 0; i < 4; ++i) plan.commands[i].lane = 0;
  }
  CHECK(tells(verify(plans), {"deadlock", "rank 0 #1 send -> 1 needs rank 1 #2 recv <- 0 behind rank 1 #1 send -> 0"}));
}

TEST_CASE("dependencies in a circle are a deadlock") {
  auto plans = samples::put_halo(2);
  plans[1].deps = {4, 0};
  plans[1].commands[0].first_dep = 0;
  plans[1].commands[0].dep_count = 1;
  plans[1].commands[4].first_dep = 1;
  plans[1].commands[4].dep_count = 1;
  plans[1].deps = {4, 2};
  CHECK(tells(verify(plans), {"deadlock", "rank 1 #0 wait ready right needs rank 1 #4 wait arrived right",
                              "rank 1 #4 wait arrived right needs rank 1 #2 signal"}));
}

TEST_CASE("stages in which a rank waits for what another does later are a deadlock") {
  const auto staged = [](Verb late) {
    auto plans = samples::eager_halo(2, 3, 2);
    for (Plan& plan : plans) {
      for (const Command& c : std::vector<Command>(plan.commands)) {
        if (c.verb != late) continue;
        for (Command& other : plan.commands)
          if (other.lane == c.lane) other.stage = 1;
      }
    }
    return plans;
  };
  CHECK(verify(staged(Verb::copy)).ok());
  const auto report = verify(staged(Verb::put));
  CHECK(tells(report, {"deadlock in epoch 1", "rank 0 #0 wait credit right needs rank 0 #3 wait arrived right",
                       "rank 0 #3 wait arrived right needs rank 1 #2 signal arrived right -> 0"}));
}

TEST_CASE("a lag that is too large lets the ring be overrun") {
  CHECK(tells(verify(samples::eager_transfer(2, 3)),
              {"rank 0 #1 put -> 1 writes 32 bytes of 'in right' of rank 1 (from offset 0, epoch 3)",
               "rank 1 #1 copy in epoch 1 reads"}));
  CHECK(tells(verify(samples::alternating_transfer(2)),
              {"rank 0 #1 put -> 1 writes", "'p' of rank 1", "the user of rank 1 after epoch 1"}));
}

TEST_CASE("a ring that is too small is overrun") {
  CHECK(tells(verify(samples::eager_transfer(1, 2)),
              {"rank 0 #1 put -> 1 writes", "'in right' of rank 1", "rank 1 #1 copy in epoch 1 reads"}));
}

TEST_CASE("a loop that is too short leaves bytes out and signals unsent") {
  auto plans = samples::chain_broadcast();
  plans[1].loops[0].count = 3;
  const auto report = verify(plans);
  CHECK(tells(report, {"'arrived' of rank 2 is signalled 3 times", "rank 1 #3 signal arrived -> 2", "per_epoch is 4"}));
  CHECK(tells(report, {"'arrived' of rank 1 is signalled 4 times", "only 3 are waited for"}));
  CHECK(tells(report,
              {"rank 2 #1 wait arrived waits for ever in epoch 1", "nobody brings 'arrived' of rank 2 from 3 to 4"}));
}

TEST_CASE("a loop that is too long leaves the buffer") {
  auto plans = samples::chain_broadcast();
  plans[0].loops[0].count = 5;
  const auto report = verify(plans);
  CHECK(tells(report, {"rank 0 #1 put -> 1 copy 0 writes bytes 0 to 319", "leaves 'data' of rank 1"}));
  CHECK(tells(report, {"rank 0 #2 signal arrived -> 1 has indices 0 to 4"}));
}

TEST_CASE("forwarding a chunk before it has arrived is a hazard") {
  auto plans = samples::chain_broadcast();
  std::swap(plans[1].commands[1], plans[1].commands[2]);
  const auto report = verify(plans);
  CHECK(tells(report, {"'data' of rank 1", "rank 1 #1 put -> 2", "rank 0 #1 put -> 1", "nothing orders"}));
}

TEST_CASE("additions to one byte must be ordered, or the result depends on chance") {
  auto plans = samples::reverse_add();
  plans[1].commands[4].dep_count = 0;
  CHECK(tells(verify(plans),
              {"rank 1 #4 reduce <- 2 writes 32 bytes of 'p' of rank 1", "rank 1 #1 reduce <- 0", "chance"}));
}

TEST_CASE("a contribution that is missing or added twice is named") {
  auto plans = samples::reverse_add();
  plans[1].commands[4].verb = Verb::copy;
  plans[1].commands[4].dtype = DType::none;
  CHECK(tells(verify(plans),
              {"rank 1 expect 0: 32 bytes of 'p' of rank 1 (from offset 8, epoch 1) hold a wrong result"}));

  plans = samples::reverse_add();
  plans[1].commands.insert(plans[1].commands.begin() + 1, plans[1].commands[1]);
  CHECK(tells(verify(plans),
              {"hold a wrong result", "'p' of rank 0 offset 40 is combined twice, by rank 1 #2 reduce <- 0"}));

  plans = samples::reverse_add();
  drop(plans[1], 4);
  CHECK(tells(verify(plans),
              {"hold a wrong result", "'p' of rank 2 offset 40 is not combined", "rank 1 #1 reduce <- 0"}));
}

TEST_CASE("a counter has one writer") {
  auto plans = samples::put_halo(3);
  plans[2].buffers.push_back({.name = "arrived right", .rank = 1, .role = Role::signal, .bytes = 8, .per_epoch = 1});
  for (Plan* plan : {&plans[2]}) {
    Command signal = plan->commands[2];
    signal.lane = 9;
    signal.peer = 1;
    signal.dst = static_cast<std::int32_t>(plan->buffers.size()) - 1;
    plan->commands.push_back(signal);
  }
  CHECK(tells(verify(plans),
              {"'arrived right' of rank 1 is signalled by two ranks", "rank 0 #2 signal", "rank 2 #10 signal"}));
}

TEST_CASE("signals of one counter must come in order") {
  auto plans = samples::chain_broadcast();
  Command& signal = plans[0].commands[2];
  signal.loop = -1;
  signal.index = 3;
  Command first = signal;
  first.index = 0;
  plans[0].commands.push_back(first);
  const auto report = verify(plans);
  CHECK(tells(report,
              {"rank 0 #2 signal arrived -> 1 signals index 3 of 'arrived' of rank 1, but index 1 would be next"}));
  CHECK(tells(report, {"rank 0 #2 signal arrived -> 1 sets 'arrived' of rank 1 to 4 when it stands at 0"}));
}

TEST_CASE("per_epoch must be the number of signals, and the same for all") {
  auto plans = samples::put_halo(2);
  for (Plan& plan : plans) {
    for (Buffer& buffer : plan.buffers) {
      if (buffer.name == "arrived left") buffer.per_epoch = 2;
    }
  }
  CHECK(tells(verify(plans), {"'arrived left' of rank 1 is signalled 1 times", "rank 0 #7 signal arrived left -> 1",
                              "per_epoch is 2"}));
  plans[0].buffers = samples::put_halo(2)[0].buffers;
  CHECK(tells(verify(plans),
              {"rank 0 takes 'arrived left' of rank 1 to be", "per_epoch 1", "its owner says", "per_epoch 2"}));
}

TEST_CASE("a wait that nobody signals is told, and that it waits for ever") {
  auto plans = samples::put_halo(3);
  drop(plans[1], 3);
  const auto report = verify(plans);
  CHECK(tells(report, {"rank 0 #0 wait ready right waits for 'ready right' of rank 0, which nobody signals"}));
  CHECK(tells(report, {"rank 0 #0 wait ready right waits for ever in epoch 1", "from 0 to 1"}));
}

TEST_CASE("a pull that does not say done reads what its owner's user may overwrite") {
  auto plans = samples::pull_halo(3);
  drop(plans[0], 1);
  CHECK(tells(verify(plans), {"the user of rank 0 before epoch 2 writes 32 bytes of 'p' of rank 0 (from offset 32",
                              "rank 1 #3 copy <- 0 in epoch 1 reads"}));
}

TEST_CASE("a pull that does not wait reads what its owner's user may still write") {
  auto plans = samples::pull_halo(2);
  drop(plans[1], 2);
  CHECK(tells(verify(plans), {"'p' of rank 0", "the user of rank 0", "rank 1 #3 copy <- 0", "nothing orders"}));
}

TEST_CASE("sending before packing sends the epoch before") {
  auto plans = samples::message_halo(3);
  std::swap(plans[0].commands[0], plans[0].commands[1]);
  const auto report = verify(plans);
  CHECK(tells(report, {"rank 1 expect 0", "rank 1 #3 copy puts bytes that nobody wrote there"}));
  // A first epoch that happens to be right is not enough.
  auto staged = samples::eager_halo(2, 1, 1);
  std::swap(staged[1].commands[3], staged[1].commands[4]);
  CHECK(tells(verify(staged), {"'in right' of rank 1", "rank 1 #3 copy", "rank 0 #1 put -> 1", "nothing orders"}));
}

TEST_CASE("values of an earlier epoch are told as such") {
  // A staging copy that lags behind: the halo is filled before the scratch is, by the same lane.
  samples::Hand hand("local", 0, 1);
  const auto field = hand.buffer("p", 0, Role::inout, samples::kField);
  const auto between = hand.buffer("s", 0, Role::scratch, samples::kField);
  hand.move(Verb::copy, between, field, {samples::column(2, 0)});
  hand.move(Verb::copy, field, between, {samples::column(4, 2)});
  hand.expect(field, field, {samples::column(4, 0)});
  CHECK(tells(verify(std::vector<Plan>{hand.plan}),
              {"(from offset 0, epoch 2)", "should come from 'p' of rank 0 offset 32",
               "rank 0 #0 copy puts 'p' of rank 0 offset 32 as it was in epoch 1 there"}));
}

TEST_CASE("copies of one command that overlap are told") {
  auto plans = samples::put_halo(2);
  copy_of(plans[0], 1).dims[0].dst_stride = 0;
  CHECK(tells(verify(plans), {"rank 0 #1 put -> 1 touches 24 bytes of 'p' of rank 1", "twice itself"}));
}

TEST_CASE("two promises of one byte are told") {
  auto plans = samples::put_halo(3);
  plans[2].expects.push_back(plans[2].expects[0]);
  CHECK(tells(verify(plans), {"rank 2 expect 2 promises 32 bytes of 'p' of rank 2"}));
}

TEST_CASE("a buffer that its owner does not have is told") {
  auto plans = samples::put_halo(2);
  plans[1].buffers[1].name = "q";
  const auto report = verify(plans);
  CHECK(tells(report, {"rank 0 names 'p' of rank 1, but rank 1's plan has no such buffer"}));
}

TEST_CASE("buffers must agree in size and ring") {
  auto plans = samples::put_halo(2);
  plans[0].buffers[1].bytes += 8;
  plans[1].buffers[0].ring = 2;
  const auto report = verify(plans);
  CHECK(tells(report, {"rank 0 takes 'p' of rank 1 to be inout, own memory, 200 bytes",
                       "its owner says inout, own memory, 192 bytes"}));
  CHECK(tells(report, {"rank 1 takes 'p' of rank 0", "ring 2", "ring 1"}));
}

TEST_CASE("buffers that a command names must agree in where they are, and in how many copies a pair has") {
  auto plans = samples::put_halo(2);
  plans[0].buffers[1].home = Home::shared;
  CHECK(tells(verify(plans),
              {"rank 0 takes 'p' of rank 1 to be inout, shared memory", "its owner says inout, own memory"}));
  plans = samples::put_halo(2);
  plans[0].buffers[1].copies = 2;
  CHECK(tells(verify(plans), {"rank 0 takes 'p' of rank 1", "copies 2, but its owner says", "copies 1"}));
}

TEST_CASE("plans of different operations, ranks or sizes do not fit") {
  auto plans = samples::put_halo(3);
  plans[1].operation = "halo q";
  std::swap(plans[0], plans[2]);
  const auto report = verify(plans);
  CHECK(tells(report, {"rank 1 plans 'halo q' while rank 0 plans 'halo p'"}));
  CHECK(tells(report, {"plan 0 of 3 says that it is rank 2 of 3"}));
  plans = samples::put_halo(3);
  plans.pop_back();
  CHECK(tells(verify(plans), {"plan 0 of 2 says that it is rank 0 of 3"}));
}

TEST_CASE("a problem is told once, whatever the number of bytes and epochs, and the list is short") {
  auto plans = samples::put_halo(3);
  drop(plans[0], 0);
  CHECK(verify(plans, 10).problems.size() == verify(plans, 3).problems.size());
  for (Plan& plan : plans) {
    for (Command& command : plan.commands) {
      if (command.verb == Verb::put) command.path = 7, command.peer = 99, command.bytes = 1;
    }
  }
  const auto report = verify(plans);
  CHECK(report.problems.size() <= 21);
  CHECK(tells(report, {"path 7"}));
}

TEST_CASE("what is too large to follow is said, not tried") {
  auto plans = samples::put_halo(2);
  plans[0].loops = {{std::int64_t{1} << 50}};
  drop(plans[0], 0);
  plans[0].commands[0].loop = 0;
  CHECK(tells(verify(plans), {"more than the verifier follows"}));
  auto rings = samples::eager_halo(600, 32767, 1);
  CHECK(tells(verify(rings), {"more than the verifier follows"}));
  samples::Hand lanes("lanes", 0, 1);
  for (std::int32_t i = 0; i < 10000; ++i) {
    lanes.plan.commands.emplace_back().lane = i;
    samples::idle(lanes.plan, i);
  }
  CHECK(tells(verify(std::vector<Plan>{lanes.plan}), {"have 10000 lanes", "more than the verifier follows"}));
  CHECK_THROWS_AS(verify(plans, -1), Error);
}
