// Option `edges`: see edges.hpp.
#include "grid/edges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tasuki/error.hpp"

namespace tasuki {

namespace {

constexpr std::string_view kLetters = "ijklmno";
static_assert(kLetters.size() == kMaxDims);

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::vector<std::string_view> divided(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(by, at), text.size());
    parts.push_back(trimmed(text.substr(at, end - at)));
    at = end + 1;
  }
  return parts;
}

class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}

  Edges list(std::string_view entries) const {
    Edges edges;
    std::string seen;
    for (const std::string_view entry : divided(entries, ',')) {
      const std::vector<std::string_view> halves = divided(entry, '=');
      const std::size_t d =
          halves.size() == 2 && halves[0].size() == 1 ? kLetters.find(halves[0][0]) : std::string_view::npos;
      if (d == std::string_view::npos)
        refuse(fmt::format("'{}' is no entry; give a dimension and its sides, such as i=face or j=-cell/none", entry));
      if (seen.find(kLetters[d]) != std::string::npos)
        refuse(fmt::format("a list names dimension {} twice", halves[0]));
      seen += kLetters[d];
      const std::vector<std::string_view> sides = divided(halves[1], '/');
      if (sides.size() > 2) refuse(fmt::format("'{}' has {} sides; a dimension has two", entry, sides.size()));
      edges.lo[d] = side(sides.front());
      edges.hi[d] = side(sides.back());
    }
    return edges;
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(fmt::format("option 'edges' is '{}': {}", text_, why));
  }

 private:
  Edge side(std::string_view word) const {
    Edge edge;
    const bool negates = word.starts_with('-');
    const std::string_view mirror = negates ? word.substr(1) : word;
    if (mirror == "face") {
      edge.mirror = Edge::Mirror::face;
    } else if (mirror == "cell") {
      edge.mirror = Edge::Mirror::cell;
    } else if (word != "none") {
      refuse(fmt::format("there is no edge '{}'; give one of none, face, cell, -face, -cell", word));
    }
    edge.negates = negates;
    return edge;
  }

  const std::string& text_;
};

}  // namespace

std::vector<Edges> edges_from(const std::string& text, const std::vector<std::string>& fields) {
  std::vector<Edges> edges(fields.size());
  if (trimmed(text).empty()) return edges;
  const Reader reader(text);
  std::vector<bool> own(fields.size(), false);
  bool general = false;
  for (const std::string_view list : divided(text, ';')) {
    const std::size_t colon = list.rfind(':');
    const Edges read = reader.list(colon == std::string_view::npos ? list : list.substr(colon + 1));
    if (colon == std::string_view::npos) {
      if (general) reader.refuse("two lists name no field");
      general = true;
      for (std::size_t f = 0; f < fields.size(); ++f)
        if (!own[f]) edges[f] = read;
      continue;
    }
    const std::string_view name = trimmed(list.substr(0, colon));
    bool known = false;
    for (std::size_t f = 0; f < fields.size(); ++f) {
      if (fields[f] != name) continue;
      if (own[f]) reader.refuse(fmt::format("two lists name field {}", name));
      known = own[f] = true;
      edges[f] = read;
    }
    if (!known) reader.refuse(fmt::format("the halo has no field '{}'", name));
  }
  return edges;
}

}  // namespace tasuki
