// Plan as data: names of verbs and roles, the memory that a plan takes, and how messages name its parts.
#include "tasuki/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <set>

#include "plan/fields.hpp"
#include "plan/label.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

constexpr std::array<std::string_view, 7> kVerbs = {"copy", "put", "send", "recv", "signal", "wait", "reduce"};
constexpr std::array<std::string_view, 5> kRoles = {"input", "output", "inout", "scratch", "signal"};

constexpr std::array<std::string_view, 5> kHomes = {"own", "shared", "device", "ll", "pinned"};
constexpr std::array<std::string_view, 10> kPurposes = {"user",   "ready",  "arrived", "available", "done",
                                                        "filled", "credit", "ring",    "outgoing",  "incoming"};

template <class Enum, std::size_t N>
std::string_view name_of(Enum value, const std::array<std::string_view, N>& names) {
  const auto i = static_cast<std::size_t>(value);
  return i < N ? names[i] : "unknown";
}

template <class Enum, std::size_t N>
void parse_name(std::string_view name, Enum& value, const std::array<std::string_view, N>& names,
                std::string_view what) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == name) {
      value = static_cast<Enum>(i);
      return;
    }
  }
  throw Error(fmt::format("'{}' is no {}; it is one of {}", name, what, fmt::join(names, ", ")));
}

template <class T>
std::int64_t array_bytes(const std::vector<T>& array) {
  return static_cast<std::int64_t>(array.size() * sizeof(T));
}

}  // namespace

std::string_view to_string(Verb verb) {
  return name_of(verb, kVerbs);
}
std::string_view to_string(Role role) {
  return name_of(role, kRoles);
}

std::string_view to_string(Home home) {
  return name_of(home, kHomes);
}
std::string_view to_string(Purpose purpose) {
  return name_of(purpose, kPurposes);
}

std::string Buffer::label() const {
  return purpose == Purpose::user ? std::string(name) : fmt::format("{}.{}<{}", to_string(purpose), link, writer);
}

std::int64_t Plan::memory() const {
  std::int64_t total = array_bytes(paths) + array_bytes(buffers) + array_bytes(copies) + array_bytes(loops) +
                       array_bytes(commands) + array_bytes(deps) + array_bytes(expects);
  total += static_cast<std::int64_t>(operation.size());
  std::set<const void*> counted;  // copies share dimensions and lists, buffers share names
  for (const StridedCopy& copy : copies) {
    if (counted.insert(copy.dims.identity()).second) total += copy.dims.bytes();
    for (const OffsetList* list : {&copy.src_list, &copy.dst_list})
      if (!list->empty() && counted.insert(list->identity()).second) total += list->bytes();
  }
  for (const auto& path : paths) total += static_cast<std::int64_t>(path.size());
  for (const auto& buffer : buffers)
    if (counted.insert(buffer.name.identity()).second) total += buffer.name.bytes();
  return total;
}

namespace detail {

void parse(std::string_view name, Verb& verb) {
  parse_name(name, verb, kVerbs, "verb");
}
void parse(std::string_view name, Role& role) {
  parse_name(name, role, kRoles, "role");
}

void parse(std::string_view name, Home& home) {
  if (name == "stamped") name = "ll";  // what it was called until version 0.1
  parse_name(name, home, kHomes, "home");
}
void parse(std::string_view name, Purpose& purpose) {
  parse_name(name, purpose, kPurposes, "purpose");
}

void check_format(std::int64_t format) {
  if (format == kPlanFormat) return;
  throw Error(fmt::format(
      "the plan has format {}, but this version of Tasuki reads format {}: write it again with this version, or read "
      "it with the {} version that wrote it",
      format, kPlanFormat, format < kPlanFormat ? "older" : "newer"));
}

void check_writable(const Plan& plan) {
  for (std::size_t i = 0; i < plan.copies.size(); ++i) {
    if (plan.copies[i].ndims < 0 || plan.copies[i].ndims > kMaxDims) {
      throw Error(fmt::format("rank {}: plan '{}' cannot be written: copy {} has {} dimensions, not 0 to {}", plan.rank,
                              plan.operation, i, plan.copies[i].ndims, kMaxDims));
    }
  }
}

std::string label(const Buffer& buffer) {
  return fmt::format("'{}' of rank {}", buffer.label(), buffer.rank);
}

std::string label(const Plan& plan, std::int64_t command) {
  std::string text = fmt::format("rank {} #{}", plan.rank, command);
  if (command < 0 || command >= std::ssize(plan.commands)) return text;
  const Command& c = plan.commands[command];
  text += fmt::format(" {}", to_string(c.verb));
  const std::int32_t signal = c.verb == Verb::signal ? c.dst : c.verb == Verb::wait ? c.src : -1;
  if (signal >= 0 && signal < std::ssize(plan.buffers)) text += fmt::format(" {}", plan.buffers[signal].label());
  if (c.peer >= 0) {
    const bool outward = c.verb == Verb::put || c.verb == Verb::send || c.verb == Verb::signal;
    text += fmt::format(" {} {}", outward ? "->" : "<-", c.peer);
  }
  return text;
}

}  // namespace detail
}  // namespace tasuki
