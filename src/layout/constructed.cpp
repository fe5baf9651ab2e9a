// Layouts of MPI's constructors: see constructed.hpp. `darray` follows MPI 4.1, section 5.1.4.
#include "layout/constructed.hpp"

#include <array>
#include <vector>

#include <fmt/format.h>

#include "layout/checked.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

constexpr const char* kOperation = "layout of a datatype";

std::int64_t product(std::int64_t a, std::int64_t b, const char* argument) {
  return narrow(Wide{a} * b, kOperation, argument, a);
}

void expect(bool fits, const char* what) {
  if (!fits) throw Error(fmt::format("{}: {}", kOperation, what));
}

// Dimensions may be more than a Layout's nest holds: one constructor for each of them.
Layout subarray(std::span<const std::int64_t> numbers, const Layout& element) {
  const std::size_t ndims = (numbers.size() - 1) / 3;
  const bool first_contiguous = numbers.back() != 0;
  Layout box = element;
  std::int64_t stride = element.extent();
  std::int64_t start = 0;
  for (std::size_t i = 0; i < ndims; ++i) {
    const std::size_t d = first_contiguous ? i : ndims - 1 - i;
    const std::int64_t size = numbers[d];
    const std::int64_t cells = numbers[ndims + d];
    const std::int64_t from = numbers[2 * ndims + d];
    expect(from >= 0 && cells >= 0 && cells <= size && from <= size - cells, "a sub-array leaves its array");
    start = narrow(start + Wide{from} * stride, kOperation, "start", from);
    box = Layout::hvector(cells, 1, stride, box);
    stride = product(size, stride, "size");
  }
  const std::array<std::int64_t, 1> one{1};
  const std::array<std::int64_t, 1> at{start};
  return Layout::resized(Layout::hindexed(one, at, box), 0, stride);
}

// The blocks of `argument` elements that process `rank` of `processes` has of a dimension of `size` elements.
Layout cyclic(std::int64_t size, std::int64_t argument, std::int64_t rank, std::int64_t processes,
              const Layout& element) {
  const std::int64_t extent = element.extent();
  const std::int64_t blocks = size / argument;  // whole ones
  const std::int64_t rest = size % argument;
  const std::int64_t mine = blocks > rank ? (blocks - rank - 1) / processes + 1 : 0;
  const std::int64_t period = product(product(processes, argument, "processes"), extent, "size");
  const std::int64_t block = product(argument, extent, "argument");
  const std::array<Layout, 2> parts{Layout::hvector(mine, argument, period, element),
                                    Layout::contiguous(blocks % processes == rank ? rest : 0, element)};
  const std::array<std::int64_t, 2> ones{1, 1};
  const std::array<std::int64_t, 2> at{product(rank, block, "rank"), product(blocks, block, "size")};
  return Layout::resized(Layout::structure(ones, at, parts), 0, product(size, extent, "size"));
}

Layout darray(std::span<const std::int64_t> numbers, const Layout& element) {
  const std::size_t ndims = (numbers.size() - 3) / 4;
  const auto sizes = numbers.subspan(2, ndims);
  const auto distributions = numbers.subspan(2 + ndims, ndims);
  const auto arguments = numbers.subspan(2 + 2 * ndims, ndims);
  const auto processes = numbers.subspan(2 + 3 * ndims, ndims);
  const bool first_contiguous = numbers.back() != 0;
  std::vector<std::int64_t> coordinates(ndims);
  std::int64_t rest = numbers[1];
  std::int64_t below = numbers[0];
  for (std::size_t d = 0; d < ndims; ++d) {  // processes are always in row-major order
    expect(processes[d] > 0 && below % processes[d] == 0, "a darray's processes are not those of its grid");
    below /= processes[d];
    coordinates[d] = rest / below;
    rest %= below;
  }
  Layout part = element;
  for (std::size_t i = 0; i < ndims; ++i) {
    const std::size_t d = first_contiguous ? i : ndims - 1 - i;
    std::int64_t argument = arguments[d];
    std::int64_t of = processes[d];
    std::int64_t rank = coordinates[d];
    switch (static_cast<Distribution>(distributions[d])) {
      case Distribution::none:
        expect(of == 1, "a darray's dimension that is not distributed has more than one process");
        argument = sizes[d];
        break;
      case Distribution::block:
        if (argument == kDefaultArgument) argument = (sizes[d] + of - 1) / of;
        break;
      case Distribution::cyclic:
        if (argument == kDefaultArgument) argument = 1;
        break;
    }
    expect(argument > 0, "a darray's distribution argument is not positive");
    part = cyclic(sizes[d], argument, rank, of, part);
  }
  return part;
}

}  // namespace

Layout constructed(Combiner combiner, std::span<const std::int64_t> numbers, std::span<const Layout> elements) {
  const auto need = [&](std::size_t count, std::size_t elements_needed = 1) {
    expect(numbers.size() >= count && elements.size() == elements_needed, "numbers or elements are missing");
  };
  const auto halves = [&] {
    expect(numbers.size() % 2 == 0, "there are not as many displacements as block lengths");
    return numbers.size() / 2;
  };
  switch (combiner) {
    case Combiner::dup:
      need(0);
      return elements[0];
    case Combiner::contiguous:
      need(1);
      return Layout::contiguous(numbers[0], elements[0]);
    case Combiner::vector:
      need(3);
      return Layout::vector(numbers[0], numbers[1], numbers[2], elements[0]);
    case Combiner::hvector:
      need(3);
      return Layout::hvector(numbers[0], numbers[1], numbers[2], elements[0]);
    case Combiner::indexed:
      need(0);
      return Layout::indexed(numbers.first(halves()), numbers.subspan(halves()), elements[0]);
    case Combiner::hindexed:
      need(0);
      return Layout::hindexed(numbers.first(halves()), numbers.subspan(halves()), elements[0]);
    case Combiner::indexed_block:
    case Combiner::hindexed_block: {
      need(1);
      const std::vector<std::int64_t> lengths(numbers.size() - 1, numbers[0]);
      return combiner == Combiner::indexed_block ? Layout::indexed(lengths, numbers.subspan(1), elements[0])
                                                 : Layout::hindexed(lengths, numbers.subspan(1), elements[0]);
    }
    case Combiner::structure:
      need(0, halves());
      return Layout::structure(numbers.first(halves()), numbers.subspan(halves()), elements);
    case Combiner::subarray:
      need(4);
      expect(numbers.size() % 3 == 1, "a sub-array lacks numbers");
      return subarray(numbers, elements[0]);
    case Combiner::darray:
      need(7);
      expect(numbers.size() % 4 == 3, "a darray lacks numbers");
      return darray(numbers, elements[0]);
    case Combiner::resized:
      need(2);
      return Layout::resized(elements[0], numbers[0], numbers[1]);
  }
  throw Error(fmt::format("{}: there is no combiner {}", kOperation, static_cast<int>(combiner)));
}

}  // namespace tasuki
