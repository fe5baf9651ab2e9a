// Option `path`: lists of names, of which each direction of a halo may have its own (path.hpp).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "machine/path_names.hpp"
#include "paths/path.hpp"
#include "tasuki/layout.hpp"

namespace tasuki {

namespace {

constexpr std::string_view kLetters = "ijklmno";  // of directions, the slowest in memory first
static_assert(kLetters.size() == kMaxDims);

std::string family_of(const std::string& name) {
  return name.substr(0, name.find(':'));
}

// What is between commas.
std::vector<std::string> listed(const std::string& names) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at <= names.size();) {
    const std::size_t end = std::min(names.find(',', at), names.size());
    all.push_back(current_path_name(names.substr(at, end - at)));
    at = end + 1;
  }
  return all;
}

// The names of one direction; of all others, if `direction` is empty.
struct List {
  std::string direction;
  std::vector<std::string> names;
};

std::vector<List> lists_of(const std::string& wanted) {
  std::vector<List> lists(1);
  for (const std::string& one : listed(wanted)) {
    const std::size_t equals = one.find('=');
    if (equals != std::string::npos) lists.push_back({one.substr(0, equals), {}});
    lists.back().names.push_back(equals == std::string::npos ? one : current_path_name(one.substr(equals + 1)));
  }
  if (lists.front().names.empty()) lists.front().names.emplace_back("auto");
  return lists;
}

// -1: there is no such direction.
int number_of(const std::string& direction) {
  if (direction.size() != 1) return -1;
  const std::size_t letter = kLetters.find(direction[0]);
  return letter == std::string_view::npos ? -1 : static_cast<int>(letter);
}

bool names_one(const std::string& name, const Path& path) {
  return name == path.name || name == family_of(path.name);
}

}  // namespace

std::string wanted_in(const std::string& wanted, int direction) {
  if (wanted.find('=') == std::string::npos) return wanted;
  const std::vector<List> lists = lists_of(wanted);
  for (const List& list : lists)
    if (!list.direction.empty() && number_of(list.direction) == direction)
      return fmt::format("{}", fmt::join(list.names, ","));
  return fmt::format("{}", fmt::join(lists.front().names, ","));
}

std::string without_directions(const std::string& wanted) {
  return wanted_in(wanted, -1);
}

bool allows(const std::string& list, const Path& path) {
  if (list == "auto") return true;
  const std::vector<std::string> all = listed(list);
  return std::any_of(all.begin(), all.end(),
                     [&](const std::string& one) { return one == "auto" || names_one(one, path); });
}

bool forces(const std::string& list, const Path& path) {
  return list != "auto" && listed(list).size() == 1 && allows(list, path);
}

bool names(const std::string& wanted, const Path& path) {
  const std::vector<List> lists = lists_of(wanted);
  return std::any_of(lists.begin(), lists.end(), [&](const List& list) {
    return std::any_of(list.names.begin(), list.names.end(),
                       [&](const std::string& one) { return names_one(one, path); });
  });
}

std::string path_complaint(const std::string& wanted, int directions) {
  if (wanted == "auto") return {};
  std::vector<std::string> known{"auto"};
  for (const Path& path : all_paths()) {
    const std::string family = family_of(path.name);
    if (family == "self") continue;  // cannot be chosen
    if (std::find(known.begin(), known.end(), family) == known.end()) known.push_back(family);
    if (family != path.name) known.push_back(path.name);
  }
  std::vector<std::string> seen;
  const std::vector<List> lists = lists_of(wanted);
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const List& list = lists[i];
    for (const std::string& one : list.names) {
      if (std::find(known.begin(), known.end(), one) != known.end()) continue;
      return fmt::format("there is no path '{}'; give one of {}, or several with commas between them", one,
                         fmt::join(known, ", "));
    }
    if (i == 0) continue;
    if (directions == 0)
      return fmt::format("option 'path' is '{}', but only a halo has directions; give names of paths alone", wanted);
    const int number = number_of(list.direction);
    if (number < 0 || number >= directions) {
      std::vector<char> there(kLetters.begin(), kLetters.begin() + directions);
      return fmt::format("option 'path' is '{}', but there is no direction '{}'; this halo has {}", wanted,
                         list.direction, fmt::join(there, ", "));
    }
    if (std::find(seen.begin(), seen.end(), list.direction) != seen.end())
      return fmt::format("option 'path' is '{}', which names direction '{}' twice; join its paths with commas", wanted,
                         list.direction);
    seen.push_back(list.direction);
  }
  return {};
}

}  // namespace tasuki
