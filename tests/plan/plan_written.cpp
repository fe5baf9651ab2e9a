// The text and the JSON form: what is written reads back equal, and what is corrupt is refused with its place.
#include <doctest/doctest.h>

#include <functional>
#include <random>

#include "plan/fields.hpp"
#include "plan_samples.hpp"
#include "tasuki/error.hpp"

using namespace tasuki;

namespace {

using Read = std::function<Plan(const std::string&)>;

std::string failure(const Read& read, const std::string& written) {
  try {
    read(written);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// Replaces the first occurrence of `what`, which must be there.
std::string with(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

void refuses(const Read& read, const std::string& written, const std::string& place, const std::string& why) {
  const std::string message = failure(read, written);
  CAPTURE(message);
  CHECK(message.find(place) != std::string::npos);
  CHECK(message.find(why) != std::string::npos);
}

/// Every field away from its default, with names that need care.
Plan odd_plan() {
  Plan plan;
  plan.operation = "halo \"p\\q\"\n# \x01 \xc3\xa9";
  plan.rank = 3;
  plan.ranks = 9;
  plan.paths = {"shared", "", "a path # with a sharp"};
  plan.buffers = {{"襷 \t", 7, Role::signal, Home::ll, Purpose::credit, -4, 8, -5, 3, 9, 2},
                  {"", -1, Role::output, Home::pinned, Purpose::incoming, INT32_MAX, -7, INT64_MAX, -2, 0, -3}};
  StridedCopy copy;
  copy.src_offset = INT64_MIN;
  copy.dst_offset = 5;
  copy.block = 3;
  copy.ndims = 7;
  for (int d = 0; d < 7; ++d) copy.dims[d] = {d + 2, -d, 100 * d};
  plan.copies = {copy, StridedCopy{}};
  plan.copies[1].ndims = 2;
  plan.loops = {{1}, {12}};
  plan.commands.resize(2);
  plan.commands[1] = {
      Verb::reduce, DType::u16, ReduceOp::bxor, true, -3, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, -13, 14, 15, 16, 17,
      18,           -19};
  plan.deps = {1, 0, 5};
  plan.expects = {{1, 2, 3, 4, DType::f32, ReduceOp::max, true}, {}};
  return plan;
}

/// Small enough that verifying takes no time.
bool small(const Plan& plan) {
  for (const Buffer& b : plan.buffers) {
    if (b.bytes > 1 << 16 || b.ring > 8 || b.per_epoch > 1000) return false;
  }
  for (const Loop& loop : plan.loops) {
    if (loop.count > 1000) return false;
  }
  for (const Command& c : plan.commands) {
    if (c.lag > 8) return false;
  }
  return true;
}

/// Cuts, repeats and changes bytes. What still reads must be writable, and the verifier must stand it.
void torture(std::function<std::string(const Plan&)> write, const Read& read, unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % std::max<std::size_t>(n, 1)); };
  static const std::string kBytes = "0123456789-:,.\"\\#[]{}e \n\x80xabs";
  int refused = 0, accepted = 0;
  for (const auto& [name, plans] : samples::all()) {
    for (int round = 0; round < 60; ++round) {
      const std::size_t victim = below(plans.size());
      std::string text = write(plans[victim]);
      for (std::size_t k = 1 + below(3); k > 0; --k) {
        const std::size_t at = below(text.size());
        switch (below(4)) {
          case 0:
            text[at] = kBytes[below(kBytes.size())];
            break;
          case 1:
            text.erase(at, below(8));
            break;
          case 2:
            text.insert(at, text.substr(below(text.size()), below(12)));
            break;
          default:
            text.insert(at, 1, kBytes[below(kBytes.size())]);
        }
      }
      Plan plan;
      try {
        plan = read(text);
      } catch (const Error&) {
        ++refused;
        continue;
      }
      ++accepted;
      CHECK(read(write(plan)) == plan);
      auto changed = plans;
      changed[victim] = plan;
      if (small(plan)) verify(changed);
    }
  }
  // Both outcomes occur, or the torture would show nothing.
  CHECK(refused > 20);
  CHECK(accepted > 20);
}

}  // namespace

TEST_CASE("text and JSON read back equal") {
  for (const auto& [name, plans] : samples::all()) {
    CAPTURE(name);
    for (const Plan& plan : plans) {
      CHECK(plan_from_text(to_text(plan)) == plan);
      CHECK(plan_from_json(to_json(plan)) == plan);
    }
  }
  const Plan odd = odd_plan();
  CHECK(plan_from_text(to_text(odd)) == odd);
  CHECK(plan_from_json(to_json(odd)) == odd);
  CHECK(plan_from_text(to_text(Plan{})) == Plan{});
  CHECK(plan_from_json(to_json(Plan{})) == Plan{});
}

TEST_CASE("the text shows one command a line, with the names of its buffers") {
  const std::string text = to_text(samples::put_halo(2)[0]);
  CHECK(text.find("plan format 2 operation \"halo p\" ranks 2\n") == 0);
  CHECK(text.find("copy 0 src_offset 32 block 8 dims 4:48:48\n") != std::string::npos);
  CHECK(text.find("command 1 lane 0 verb put peer 1 src 0 dst 1 copy_count 1 bytes 32  # p to rank 1: p\n") !=
        std::string::npos);
}

TEST_CASE("text may have remarks, empty lines and other blanks") {
  const std::string text = to_text(samples::pull_halo(3)[1]);
  std::string loose = "\n# first\n";
  for (const char c : text) loose += c == '\n' ? std::string(" \t# remark\r\n\n#\n") : std::string(1, c);
  CHECK(plan_from_text(loose) == plan_from_text(text));
}

TEST_CASE("corrupt text is refused with its line") {
  const Read read = [](const std::string& text) { return plan_from_text(text); };
  const std::string text = to_text(samples::put_halo(2)[1]);
  refuses(read, "", "line 0", "without 'end'");
  refuses(read, "hello", "line 1", "a plan starts with");
  refuses(read, with(text, "format 2", "format 1"), "line 1",
          "the plan has format 1, but this version of Tasuki reads format 2: write it again with this version, or read "
          "it with the older version that wrote it");
  refuses(read, with(text, "format 2", "format 3"), "line 1", "has format 3");
  refuses(read, with(text, "path 0", "path 1"), "line 2", "index, 0");
  refuses(read, with(text, "buffer 0", "bufer 0"), "line 3", "unknown kind of line 'bufer'");
  refuses(read, with(text, "inout", "both"), "line 3", "field 'role': 'both' is no role; it is one of input, output");
  refuses(read, with(text, "role inout", "role inout home away"), "line 3",
          "field 'home': 'away' is no home; it is one of own, shared, device, ll, pinned");
  CHECK(plan_from_text(with(text, "role inout", "role inout home stamped")).buffers[0].home ==
        Home::ll);  // the old name
  refuses(read, with(text, "role inout", "role inout purpose none"), "line 3",
          "field 'purpose': 'none' is no purpose; it is one of user, ready");
  refuses(read, with(text, "bytes 192", "bytes 19x"), "line 3", "field 'bytes': '19x' is no integer");
  refuses(read, with(text, "bytes 192", "bytes 99999999999999999999"), "line 3", "does not fit in 64 bits");
  refuses(read, with(text, "bytes 192", "bites 192"), "line 3", "unknown field 'bites'");
  refuses(read, with(text, "name \"p\"", "name p"), "line 3", "should be quoted");
  refuses(read, with(text, "name \"p\"", "name \"p"), "line 3", "no end");
  refuses(read, with(text, "name \"p\"", "name \"\\xg1\""), "line 3", "escape");
  refuses(read, with(text, "4:48:48", "4:48"), "line 13", "count:src_stride:dst_stride");
  refuses(read, with(text, "4:48:48", "1:1:1,1:1:1,1:1:1,1:1:1,1:1:1,1:1:1,1:1:1,1:1:1"), "line 13", "8 dimensions");
  refuses(read, with(text, "verb put", "verb"), "line 18", "field 'verb': 'peer' is no verb");
  refuses(read, text.substr(0, text.size() - 5), "line ", "without 'end'");
}

TEST_CASE("corrupt JSON is refused with its place") {
  const Read read = [](const std::string& text) { return plan_from_json(text); };
  const std::string json = to_json(samples::put_halo(2)[1]);
  refuses(read, "", "byte 1", "");
  refuses(read, "[1]", "top level", "an object is needed, not array");
  refuses(read, "{}", "top level", "'format' is missing");
  refuses(read, json.substr(0, json.size() / 2), "byte ", "");
  refuses(read, json + "x", "byte ", "");
  refuses(read, with(json, "\"format\": 2", "\"format\": 1"), "format", "the plan has format 1, but this version");
  refuses(read, with(json, "\"loops\"", "\"lops\""), "lops", "unknown field");
  refuses(read, with(json, "\"inout\"", "\"both\""), "buffers[0].role", "'both' is no role");
  refuses(read, with(json, "\"inout\"", "7"), "buffers[0].role", "a string is needed, not number");
  refuses(read, with(json, "\"inout\"", "\"inout\",\"home\":\"own \""), "buffers[0].home", "'own ' is no home");
  refuses(read, with(json, "\"inout\"", "\"inout\",\"purpose\":3"), "buffers[0].purpose",
          "a string is needed, not number");
  refuses(read, with(json, "192", "1.5"), "buffers[0].bytes", "an integer is needed");
  refuses(read, with(json, "192", "18446744073709551615"), "buffers[0].bytes", "does not fit in 64 bits");
  refuses(read, with(json, "\"rank\":1", "\"rank\":4294967296"), "buffers[1].rank", "does not fit in 32 bits");
  refuses(read, with(json, "[4,48,48]", "[4,48]"), "copies[0].dims[0]", "a dimension is");
  refuses(read, with(json, "[[4,48,48]]", "4"), "copies[0].dims", "an array is needed");
  refuses(read, with(json, "\"verb\":\"put\"", "\"verb\":\"pat\""), "commands[1].verb", "it is one of copy, put");
  refuses(read, with(json, "\"verb\":\"put\"", "\"vreb\":\"put\""), "commands[1].vreb", "unknown field");
  refuses(read, std::string(100000, '['), "byte ", "");
}

TEST_CASE("what a written form cannot hold is refused when writing") {
  Plan plan;
  plan.copies.resize(1);
  plan.copies[0].ndims = 9;
  CHECK_THROWS_WITH_AS(to_text(plan), doctest::Contains("copy 0 has 9 dimensions"), Error);
  CHECK_THROWS_WITH_AS(to_json(plan), doctest::Contains("copy 0 has 9 dimensions"), Error);
  plan = Plan{};
  plan.operation = "\xff";
  CHECK(plan_from_text(to_text(plan)) == plan);
  CHECK_THROWS_WITH_AS(to_json(plan), doctest::Contains("UTF-8"), Error);
  CHECK(plan_from_json(detail::to_shown_json(plan)).operation == "\xef\xbf\xbd");  // for people: U+FFFD
}

TEST_CASE("mutated text never crashes reader or verifier") {
  torture(
      to_text, [](const std::string& text) { return plan_from_text(text); }, 7);
}

TEST_CASE("mutated JSON never crashes reader or verifier") {
  torture(
      to_json, [](const std::string& text) { return plan_from_json(text); }, 11);
}

TEST_CASE("the memory of a plan grows with what it holds") {
  Plan plan;
  const std::int64_t empty = plan.memory();
  plan.commands.resize(10);
  CHECK(plan.memory() == empty + 10 * static_cast<std::int64_t>(sizeof(Command)));
  plan.operation = "abc";
  CHECK(plan.memory() == empty + 10 * static_cast<std::int64_t>(sizeof(Command)) + 3);
}
