// What the programs laplace and himeno compute, on one rank: the line that the examples of xmp.h must print, without
// the norms, whose sums have another order.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "checksum.h"
#include "himeno/serial.hpp"
#include "laplace/serial.hpp"

namespace {

template <class T>
void print(const std::vector<T>& values) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += checksum(&values[i], sizeof(T), static_cast<std::int64_t>(i));
  std::printf("checksum %016llx\n", static_cast<unsigned long long>(sum));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string which = argc > 1 ? argv[1] : "";
  const auto number = [&](int i) { return std::atoll(argv[i]); };
  if (which == "laplace" && argc >= 5) print(laplace::solve_serially(number(2), number(3), std::atoi(argv[4])));
  if (which == "himeno" && argc >= 6)
    print(himeno::solve_serially({number(2), number(3), number(4)}, std::atoi(argv[5])));
  return argc < 5 ? EXIT_FAILURE : EXIT_SUCCESS;
}
