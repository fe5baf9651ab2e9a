// See gmove.hpp. Every rank sends each other rank the bytes that its memory has for it: a neighbour collective of
// Tasuki over the ranks that have something in common, with layouts that name the elements where they lie.
#include "gmove.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "gpu_work.hpp"
#include "guard.hpp"
#include "reflect.hpp"
#include "tasuki/error.hpp"
#include "tasuki/memory.hpp"
#include "tasuki/neighbours.hpp"
#include "whereabouts.hpp"
#include "world.hpp"
#include "xmp.h"

namespace tasuki::xmp {

namespace {

void require_executing(const Array& array) {
  for (const int rank : array.shape.nodes().ranks)
    if (world().executing().number_of(rank) < 0)
      throw Error(
          fmt::format("array '{}' has elements on rank {}, which is not one of the executing nodes; all nodes of "
                      "both arrays must take part",
                      array.name, rank));
}

// Whether a range of the one may name what a range of the other does, element by element of memory.
bool may_meet(const Array& to, const std::vector<Range>& to_section, const Array& from,
              const std::vector<Range>& from_section, Memory where) {
  if (&to != &from) {  // two arrays may have been bound to one memory
    const auto begin = [where](const Array& array) {
      return reinterpret_cast<std::uintptr_t>(array.places[where == Memory::host ? 0 : 1].memory);
    };
    const std::uintptr_t a = begin(to);
    const std::uintptr_t b = begin(from);
    return a < b + static_cast<std::uintptr_t>(from.bytes()) && b < a + static_cast<std::uintptr_t>(to.bytes());
  }
  for (std::size_t d = 0; d < to_section.size(); ++d)
    if (to_section[d].end <= from_section[d].first || from_section[d].end <= to_section[d].first) return false;
  return true;
}

void add_section(std::vector<std::int64_t>& key, Array& array, const std::vector<Range>& section, Memory where) {
  key.push_back(array.serial);
  key.push_back(array.place(where).generation);
  for (const Range& range : section) key.insert(key.end(), {range.first, range.end, range.step});
}

std::string text_of(const std::vector<Range>& section) {
  std::string text;
  for (const auto& [first, end, step] : section) text += fmt::format("[{}, {}) by {} ", first, end, step);
  return text.substr(0, text.size() - 1);
}

std::vector<Layout> layouts_of(const std::vector<Packet>& blocks) {
  std::vector<Layout> layouts;
  for (const Packet& block : blocks) layouts.push_back(block.layout);
  return layouts;
}

std::vector<int> ranks_of(const std::vector<Packet>& blocks) {
  std::vector<int> ranks;
  for (const Packet& block : blocks) ranks.push_back(world().executing().number_of(block.rank));
  return ranks;
}

// What is sent is packed into memory of its own before anything arrives: the right side is read first.
void pack_first(Work& work, std::vector<Layout>& sent, const void*& in) {
  std::int64_t bytes = 0;
  for (const Layout& layout : sent) bytes += layout.size();
  const std::shared_ptr<std::byte> packed = shared_alloc(world().context(), bytes);
  work.keep.push_back(packed);
  work.before = [from = in, layouts = sent, to = packed.get()](Stream /*stream*/) {
    std::byte* at = to;
    for (const Layout& layout : layouts) {
      layout.pack(from, at);
      at += layout.size();
    }
  };
  in = packed.get();
  std::int64_t at = 0;
  for (Layout& layout : sent) {
    const std::int64_t size = layout.size();
    const std::vector<std::int64_t> one{1};
    const std::vector<std::int64_t> where{at};
    layout = Layout::hindexed(one, where, Layout::bytes(size));
    at += size;
  }
}

// The same on GPUs: all of the right side's memory here is copied.
void copy_first(Work& work, std::int64_t bytes, const void*& in) {
  const std::shared_ptr<void> copied = gpu_memory(bytes);
  work.keep.push_back(copied);
  work.before = [from = in, to = copied.get(), bytes](Stream stream) { gpu_copy(to, from, bytes, stream); };
  in = copied.get();
}

}  // namespace

std::shared_ptr<Work> assignment(const char* name, Array& to, const std::vector<Range>& to_section, Array& from,
                                 const std::vector<Range>& from_section, Memory where, const std::vector<int>& order) {
  doing_now->array = &to.name;
  doing_now->from = &from.name;
  std::vector<std::int64_t> numbers{2, static_cast<std::int64_t>(where)};
  add_section(numbers, to, to_section, where);
  add_section(numbers, from, from_section, where);
  numbers.insert(numbers.end(), order.begin(), order.end());
  const std::vector<int>& ranks = world().executing().ranks;
  numbers.insert(numbers.end(), ranks.begin(), ranks.end());
  const Key key{numbers, {}};
  auto work = world().find(key);
  if (!work) {
    work = new_assignment(name, to, to_section, from, from_section, where, order);
    world().keep(key, ranks, work);
  }
  return work;
}

std::shared_ptr<Work> new_assignment(const char* name, Array& to, const std::vector<Range>& to_section, Array& from,
                                     const std::vector<Range>& from_section, Memory where,
                                     const std::vector<int>& order) {
  const std::vector<int>& ranks = world().executing().ranks;
  const std::string doing = fmt::format("{} of {} to {}", name, from.name, to.name);
  Moves moves;
  std::string complaint;
  try {
    require_executing(to);
    require_executing(from);
    (void)memory_of_array(to, where);
    (void)memory_of_array(from, where);
    if (to.type != from.type && to.type != DType::none && from.type != DType::none)
      throw Error(
          fmt::format("the left side's elements are {}, the right side's {}, and nothing is converted; move them "
                      "to an array of their own type first",
                      to_string(to.type), to_string(from.type)));
    moves = moves_of({&to.shape, to_section}, {&from.shape, from_section}, world().rank(), order);
  } catch (const Error& error) {
    complaint = error.what();
  }
  const Context& context = world().context(ranks);
  // Whether memory is in common may depend on the rank, but what is done about it concerns this rank alone.
  agree(context, doing, complaint, {{"left section", text_of(to_section)}, {"right section", text_of(from_section)}});
  auto work = std::make_shared<Work>();
  work->arrays = {to.serial, from.serial};
  std::vector<Layout> sent = layouts_of(moves.sent);
  const void* in = from.place(where).memory;
  if (!sent.empty() && may_meet(to, to_section, from, from_section, where)) {
    if (where == Memory::host)
      pack_first(*work, sent, in);
    else
      copy_first(*work, from.bytes(), in);
  }
  work->operations.push_back(NeighbourAlltoall(context, Neighbours(ranks_of(moves.sent), ranks_of(moves.received)), in,
                                               sent, to.place(where).memory, layouts_of(moves.received)));
  return work;
}

std::shared_ptr<Work> transposition(const char* name, Array& to, Array& from, Memory where) {
  for (const Array* const one : {&to, &from})
    if (one->shape.ndims() != 2) refuse("array '{}' has {} dimensions; it must have 2", one->name, one->shape.ndims());
  for (int d = 0; d < 2; ++d)
    if (to.shape.dim(d).extent != from.shape.dim(1 - d).extent)
      refuse("array '{}' is {} x {}, but the transposed of '{}' is {} x {}", to.name, to.shape.dim(0).extent,
             to.shape.dim(1).extent, from.name, from.shape.dim(1).extent, from.shape.dim(0).extent);
  // An extent of 1 is passed over, and then nothing is left to be exchanged.
  const bool plane = to.shape.dim(0).extent > 1 && to.shape.dim(1).extent > 1;
  return assignment(name, to, section_from(to, nullptr), from, section_from(from, nullptr), where,
                    plane ? std::vector<int>{1, 0} : std::vector<int>{});
}

}  // namespace tasuki::xmp

using namespace tasuki::xmp;  // NOLINT(google-build-using-namespace)
using tasuki::Memory;

namespace {

std::shared_ptr<Work> gmove(xmp_desc_t to, const xmp_range to_section[], xmp_desc_t from,
                            const xmp_range from_section[]) {
  Array& left = array_of(to, "to");
  Array& right = array_of(from, "from");
  return assignment("gmove", left, section_from(left, to_section), right, section_from(right, from_section),
                    Memory::host);
}

}  // namespace

extern "C" {

int xmp_gmove(xmp_desc_t to, const xmp_range to_section[], xmp_desc_t from, const xmp_range from_section[]) {
  return guarded("xmp_gmove", [&] { gmove(to, to_section, from, from_section)->run(); });
}

int xmp_gmove_async(xmp_desc_t to, const xmp_range to_section[], xmp_desc_t from, const xmp_range from_section[],
                    int id) {
  return guarded("xmp_gmove_async", [&] { world().start(id, gmove(to, to_section, from, from_section)); });
}

int xmp_transpose(xmp_desc_t to, xmp_desc_t from, int option) {
  return guarded("xmp_transpose", [&] {
    static_cast<void>(option);
    transposition("transpose", array_of(to, "to"), array_of(from, "from"), Memory::host)->run();
  });
}
}
