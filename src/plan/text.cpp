// The text form of a plan: one record a line, `kind index field value ...`, fields at their default left out, and
// after each command a remark with the names of its buffers. `#` outside quotes starts a remark.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <limits>

#include "plan/fields.hpp"
#include "plan/label.hpp"
#include "plan/share.hpp"
#include "tasuki/error.hpp"
#include "tasuki/plan.hpp"

namespace tasuki {
namespace {

// --- writing ---------------------------------------------------------------------------------------------------------

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

template <class Record, class Member>
std::string shown(const Record& record, Member member) {
  const auto& value = record.*member;
  using Value = std::remove_cvref_t<decltype(value)>;
  if constexpr (std::is_same_v<Value, CopyDims>) {
    std::string out;
    for (std::int32_t d = 0; d < record.ndims; ++d) {
      out += fmt::format("{}{}:{}:{}", d ? "," : "", value[d].count, value[d].src_stride, value[d].dst_stride);
    }
    return out;
  } else if constexpr (std::is_same_v<Value, OffsetList>) {
    std::string out;
    for (std::int64_t i = 0; i < value.size(); ++i) out += fmt::format("{}{}", i > 0 ? "," : "", value[i]);
    return out;
  } else if constexpr (detail::kIsText<Value>) {
    return quoted(std::string(value));
  } else if constexpr (std::is_enum_v<Value>) {
    return std::string(to_string(value));
  } else if constexpr (std::is_same_v<Value, bool>) {
    return value ? "true" : "false";
  } else {
    return std::to_string(value);
  }
}

template <class Record>
std::string line_of(const Record& record) {
  std::string out;
  detail::fields<Record>([&](std::string_view name, auto member) {
    if (detail::worth_writing(record, member)) out += fmt::format(" {} {}", name, shown(record, member));
  });
  return out;
}

/// What the indices of a command mean, for people.
std::string remark(const Plan& plan, const Command& command) {
  const auto name = [&](std::int32_t i) {
    return i >= 0 && i < std::ssize(plan.buffers) ? plan.buffers[i].label() : std::string("?");
  };
  std::string out;
  if (command.src >= 0) out += " " + name(command.src);
  if (command.peer >= 0 || command.dst >= 0) {
    const bool outward = command.verb == Verb::put || command.verb == Verb::send || command.verb == Verb::signal;
    out += command.peer < 0 ? " to" : fmt::format(" {} rank {}:", outward ? "to" : "from", command.peer);
  }
  if (command.dst >= 0) out += " " + name(command.dst);
  const std::int64_t deps = std::ssize(plan.deps);
  for (std::int64_t d = command.first_dep;
       d >= 0 && d < deps && d < std::int64_t{command.first_dep} + command.dep_count; ++d) {
    out += fmt::format(" after {}", plan.deps[d]);
  }
  for (char& c : out) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return out.empty() ? out : "  #" + out;
}

// --- reading ---------------------------------------------------------------------------------------------------------

struct Token {
  std::string text;
  bool quoted = false;
};

/// One line cut into words and quoted strings.
std::vector<Token> words_of(std::string_view line) {
  std::vector<Token> words;
  std::size_t i = 0;
  while (i < line.size()) {
    if (line[i] == ' ' || line[i] == '\t' || line[i] == '\r') {
      ++i;
    } else if (line[i] == '#') {
      break;
    } else if (line[i] != '"') {
      const std::size_t begin = i;
      while (i < line.size() && line[i] != ' ' && line[i] != '\t' && line[i] != '\r' && line[i] != '#') ++i;
      words.push_back({std::string(line.substr(begin, i - begin)), false});
    } else {
      Token word{"", true};
      for (++i; i < line.size() && line[i] != '"'; ++i) {
        if (line[i] != '\\') {
          word.text += line[i];
        } else if (i + 1 < line.size() && line[i + 1] != 'x') {
          word.text += line[++i];
        } else {
          unsigned value = 0;
          const std::string_view digits = line.substr(std::min(i + 2, line.size()), 2);
          const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
          if (digits.size() != 2 || failed != std::errc{} || end != digits.data() + 2)
            throw Error("bad \\x escape in a quoted string");
          word.text += static_cast<char>(value);
          i += 3;
        }
      }
      if (i == line.size()) throw Error("a quoted string has no end");
      ++i;
      words.push_back(std::move(word));
    }
  }
  return words;
}

template <class Integer>
Integer integer(std::string_view text) {
  Integer value{};
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed == std::errc::result_out_of_range) {
    throw Error(fmt::format("{} does not fit in {} bits", text, std::numeric_limits<Integer>::digits + 1));
  }
  if (failed != std::errc{} || end != text.data() + text.size()) throw Error(fmt::format("'{}' is no integer", text));
  return value;
}

std::vector<std::string_view> parts(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (std::size_t at = text.find(separator); at != std::string_view::npos; at = text.find(separator)) {
    out.push_back(text.substr(0, at));
    text.remove_prefix(at + 1);
  }
  out.push_back(text);
  return out;
}

void read_dims(std::string_view text, StridedCopy& copy) {
  const auto dims = parts(text, ',');
  if (dims.size() > kMaxDims) throw Error(fmt::format("{} dimensions; at most {} are possible", dims.size(), kMaxDims));
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const auto numbers = parts(dims[d], ':');
    if (numbers.size() != 3) throw Error(fmt::format("dimension '{}' is not count:src_stride:dst_stride", dims[d]));
    copy.dims[d] = {integer<std::int64_t>(numbers[0]), integer<std::int64_t>(numbers[1]),
                    integer<std::int64_t>(numbers[2])};
  }
  copy.ndims = static_cast<std::int32_t>(dims.size());
}

template <class Record, class Member>
void read_value(const Token& word, Record& record, Member member) {
  auto& value = record.*member;
  using Value = std::remove_cvref_t<decltype(value)>;
  if (word.quoted != detail::kIsText<Value>) {
    throw Error(fmt::format("'{}' should {}be quoted", word.text, word.quoted ? "not " : ""));
  }
  if constexpr (detail::kIsText<Value>) {
    value = word.text;
  } else if constexpr (std::is_same_v<Value, CopyDims>) {
    read_dims(word.text, record);
  } else if constexpr (std::is_same_v<Value, OffsetList>) {
    std::vector<std::int64_t> offsets;
    for (const std::string_view part : parts(word.text, ',')) offsets.push_back(integer<std::int64_t>(part));
    value = OffsetList(offsets);
  } else if constexpr (std::is_enum_v<Value>) {
    detail::parse(word.text, value);
  } else if constexpr (std::is_same_v<Value, bool>) {
    if (word.text != "true" && word.text != "false") throw Error(fmt::format("'{}' is not true or false", word.text));
    value = word.text == "true";
  } else {
    value = integer<Value>(word.text);
  }
}

template <class Record>
Record record_of(std::span<const Token> words) {
  Record record{};
  for (std::size_t i = 0; i < words.size(); i += 2) {
    if (i + 1 == words.size()) throw Error(fmt::format("field '{}' has no value", words[i].text));
    bool known = false;
    detail::fields<Record>([&](std::string_view name, auto member) {
      if (words[i].quoted || name != words[i].text) return;
      try {
        read_value(words[i + 1], record, member);
      } catch (const Error& error) {
        throw Error(fmt::format("field '{}': {}", name, error.what()));
      }
      known = true;
    });
    if (!known) throw Error(fmt::format("unknown field '{}'", words[i].text));
  }
  return record;
}

/// Appends the record of a line `kind index field value ...`, whose index must be the next.
template <class Record>
void append(std::span<const Token> words, std::vector<Record>& records) {
  if (words.size() < 2 || words[1].text != std::to_string(records.size())) {
    throw Error(fmt::format("'{}' should be followed by its index, {}", words[0].text, records.size()));
  }
  if constexpr (std::is_same_v<Record, std::string>) {
    if (words.size() != 3 || !words[2].quoted) throw Error(fmt::format("'{}' needs one quoted name", words[0].text));
    records.push_back(words[2].text);
  } else {
    records.push_back(record_of<Record>(words.subspan(2)));
  }
}

void read_header(std::span<const Token> words, Plan& plan) {
  if (words.size() < 3 || words[0].text != "plan" || words[1].text != "format") {
    throw Error("a plan starts with 'plan format ...'");
  }
  detail::check_format(integer<std::int64_t>(words[2].text));
  plan = record_of<Plan>(words.subspan(3));
}

void read_line(std::span<const Token> words, Plan& plan) {
  const std::string& kind = words[0].text;
  if (kind == "path") {
    append(words, plan.paths);
  } else if (kind == "buffer") {
    append(words, plan.buffers);
  } else if (kind == "copy") {
    append(words, plan.copies);
  } else if (kind == "loop") {
    append(words, plan.loops);
  } else if (kind == "command") {
    append(words, plan.commands);
  } else if (kind == "expect") {
    append(words, plan.expects);
  } else if (kind == "deps") {
    for (const Token& word : words.subspan(1)) plan.deps.push_back(integer<std::int32_t>(word.text));
  } else {
    throw Error(fmt::format("unknown kind of line '{}'", kind));
  }
}

}  // namespace

std::string to_text(const Plan& plan) {
  detail::check_writable(plan);
  std::string out = fmt::format("plan format {}{}\n", detail::kPlanFormat, line_of(plan));
  const auto section = [&](std::string_view kind, const auto& records) {
    for (std::size_t i = 0; i < records.size(); ++i) out += fmt::format("{} {}{}\n", kind, i, line_of(records[i]));
  };
  for (std::size_t i = 0; i < plan.paths.size(); ++i) out += fmt::format("path {} {}\n", i, quoted(plan.paths[i]));
  section("buffer", plan.buffers);
  section("copy", plan.copies);
  section("loop", plan.loops);
  for (std::size_t i = 0; i < plan.commands.size(); ++i) {
    const Command& command = plan.commands[i];
    out += fmt::format("command {}{}{}\n", i, line_of(command), remark(plan, command));
  }
  if (!plan.deps.empty()) out += fmt::format("deps {}\n", fmt::join(plan.deps, " "));
  section("expect", plan.expects);
  return out + "end\n";
}

Plan plan_from_text(std::string_view text) {
  Plan plan;
  bool started = false;
  std::int64_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t size = std::min(text.find('\n'), text.size());
    try {
      const std::vector<Token> words = words_of(text.substr(0, size));
      if (!words.empty() && !started) {
        read_header(words, plan);
        started = true;
      } else if (words.size() == 1 && words[0].text == "end") {
        share(plan);
        return plan;
      } else if (!words.empty()) {
        read_line(words, plan);
      }
    } catch (const Error& error) {
      throw Error(fmt::format("plan text, line {}: {}", number, error.what()));
    }
    text.remove_prefix(std::min(size + 1, text.size()));
  }
  throw Error(fmt::format("plan text, line {}: the text stops without 'end'", number));
}

}  // namespace tasuki
