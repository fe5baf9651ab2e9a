// Main of the tests whose ranks are threads of one process: `PROGRAM RANKS [doctest's arguments]`.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "rank_test.hpp"
#include "tasuki/threads.hpp"

/// Why this program cannot run here, or empty; set by programs that need more than threads.
std::string (*why_skip)(int ranks) = nullptr;

namespace {
int ranks = 0;
}

void on_ranks(void (*body)(const tasuki::Context&)) {
  tasuki::run_threads(ranks, body);
}

int main(int argc, char** argv) {
  ranks = argc > 1 ? std::atoi(argv[1]) : 0;
  if (ranks < 1) {
    std::fprintf(stderr, "usage: %s RANKS [doctest's arguments]\n", argv[0]);
    return EXIT_FAILURE;
  }
  const std::string skip = why_skip != nullptr ? why_skip(ranks) : std::string();
  if (!skip.empty()) {
    std::printf("SKIPPED: %s\n", skip.c_str());
    return EXIT_SUCCESS;
  }
  doctest::Context context(argc, argv);
  return context.run();
}
