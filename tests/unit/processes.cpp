// What is told from /proc: the fields of a stat line, and whether a process is still the one that was meant.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "session/process.hpp"
#include "session/topology.hpp"

using namespace tasuki;

TEST_CASE("a stat line is read in spite of spaces and parentheses in the name") {
  const std::string rest = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 987654321 20 21\n";
  for (const char* name : {"(cat)", "(a b)", "(x) R 1 (y)", "())"}) {
    const auto stat = parse_process_stat("4711 " + std::string(name) + rest);
    REQUIRE(stat);
    CHECK(stat->state == 'S');
    CHECK(stat->born == 987654321);
  }
  CHECK_FALSE(parse_process_stat(""));
  CHECK_FALSE(parse_process_stat("4711 (cat) S 1 2"));
  CHECK_FALSE(parse_process_stat("4711 cat S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20"));
}

TEST_CASE("a process is running until it has ended, also as a zombie, and another one with its id does not count") {
  CHECK(own_start_time() != 0);
  CHECK(life_of(getpid(), own_start_time()) == Life::running);
  CHECK(life_of(getpid(), 0) == Life::running);
  CHECK(life_of(getpid(), own_start_time() + 1) == Life::ended);

  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  REQUIRE(child > 0);
  CHECK(life_of(child, 0) == Life::running);
  kill(child, SIGKILL);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);  // leaves the zombie
  CHECK(life_of(child, 0) == Life::ended);
  waitpid(child, nullptr, 0);
  CHECK(life_of(child, 0) == Life::ended);
}

TEST_CASE("hosts are cut into islands in rank order") {
  Topology topology;
  for (const int host : {0, 1, 0, 1, 0, 0}) {  // ranks dealt to two hosts in turn
    Process process;
    process.host = host;
    for (const Process& other : topology.processes) process.local += other.host == host ? 1 : 0;
    topology.processes.push_back(process);
  }
  const auto islands = [&](int size) {
    cut_islands(topology, size);
    std::vector<int> list;
    for (const Process& process : topology.processes) list.push_back(process.island);
    return list;
  };
  CHECK(islands(0) == std::vector<int>{0, 1, 0, 1, 0, 0});
  CHECK(topology.islands == 2);
  CHECK(islands(2) == std::vector<int>{0, 1, 0, 1, 2, 2});
  CHECK(topology.islands == 3);
  CHECK(islands(3) == std::vector<int>{0, 1, 0, 1, 0, 2});
  CHECK(islands(1) == std::vector<int>{0, 1, 2, 3, 4, 5});
  CHECK(islands(100) == std::vector<int>{0, 1, 0, 1, 0, 0});
}
