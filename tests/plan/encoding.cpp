// What ranks tell each other, written and read back: any bytes in texts, and any damage to a message.
#include "layout/encoding.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

using namespace tasuki;

namespace {

struct Record {
  std::int32_t a = 0;
  double b = 0;
  friend bool operator==(const Record&, const Record&) = default;
};

const std::vector<std::string> kTexts{"",      std::string("\0", 1),      "a\nb",     "\n",
                                      "12:34", std::string("a\0b\nc", 5), "\xff\xfe", std::string(100001, 'x'),
                                      "ü→☃"};

Encoder sample() {
  Encoder to;
  to.number(-7).text("a\nb").numbers(std::array<std::int64_t, 3>{1, 2, 3});
  to.layout(Layout::vector(3, 2, 5, Layout::bytes(8))).record(Record{3, 2.5}).text("");
  return to;
}

void read(std::string_view bytes) {
  Decoder from(bytes);
  CHECK(from.number(-10, 10) == -7);
  CHECK(from.text() == "a\nb");
  CHECK(from.numbers() == std::vector<std::int64_t>{1, 2, 3});
  CHECK(from.layout().size() == 48);
  CHECK(from.record<Record>() == Record{3, 2.5});
  CHECK(from.text().empty());
  from.end();
}

// The same without looking at the values.
void take_all(std::string_view bytes) {
  Decoder from(bytes);
  (void)from.number();
  (void)from.text();
  (void)from.numbers();
  (void)from.layout();
  (void)from.records<Record>();
  (void)from.text();
  from.end();
}

}  // namespace

TEST_CASE("what is encoded is read back: texts of any bytes, numbers, layouts, records") {
  read(sample().bytes());
  for (const std::string& text : kTexts) {
    for (const std::string& other : kTexts) {
      const std::string bytes =
          Encoder().text(text).text(other).number(std::numeric_limits<std::int64_t>::min()).bytes();
      Decoder from(bytes);
      CHECK(from.text() == text);
      CHECK(from.text() == other);
      CHECK(from.number() == std::numeric_limits<std::int64_t>::min());
      CHECK(from.empty());
    }
  }
  CHECK(decoded<Record>(encoded(Record{1, 0.5})) == Record{1, 0.5});
  const std::string none = Encoder().records(std::span<const Record>()).numbers({}).bytes();
  Decoder from(none);
  CHECK(from.records<Record>().empty());
  CHECK(from.numbers().empty());
}

TEST_CASE("values of another kind, size or range are refused") {
  const std::string number = Encoder().number(11).bytes();
  CHECK_THROWS_AS(Decoder(number).text(), Malformed);
  CHECK_THROWS_AS(Decoder(number).layout(), Malformed);
  CHECK_THROWS_AS(Decoder(number).number(0, 10), Malformed);
  CHECK_THROWS_AS(Decoder("").number(), Malformed);
  CHECK_THROWS_AS(decoded<double>(encoded(Record{})), Malformed);
  CHECK_THROWS_AS(decoded<Record>(encoded(Record{}) + "x"), Malformed);
  const std::array<Record, 2> two{};
  CHECK_THROWS_AS(decoded<Record>(Encoder().records(std::span<const Record>(two)).bytes()), Malformed);
  std::string odd = Encoder().text("123").bytes();
  odd[0] = static_cast<char>(Encoded::numbers);
  CHECK_THROWS_AS(Decoder(odd).numbers(), Malformed);
  odd[0] = static_cast<char>(Encoded::layout);
  CHECK_THROWS_AS(Decoder(odd).layout(), Malformed);
}

TEST_CASE("a message that was cut or damaged is refused or read, never past its end") {
  const std::string whole = sample().bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::vector<char> part(whole.begin(),
                                 whole.begin() + static_cast<std::ptrdiff_t>(size));  // no zero behind it
    CHECK_THROWS_AS(take_all({part.data(), part.size()}), Malformed);
  }
  std::minstd_rand random(3);
  for (int i = 0; i < 20000; ++i) {
    std::vector<char> bytes(whole.begin(), whole.end());
    for (auto n = random() % 3 + 1; n > 0; --n) bytes[random() % bytes.size()] = static_cast<char>(random());
    try {
      take_all({bytes.data(), bytes.size()});
    } catch (const Malformed&) {
    }
  }
}

TEST_CASE("a list is told as little more than its offsets, and layouts are read back as they were") {
  std::mt19937 random(3);
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
  std::vector<std::int64_t> offsets;
  for (std::int64_t i = 0; i < 1000; ++i) offsets.push_back(24 * i);
  std::shuffle(offsets.begin(), offsets.end(), random);
  const Layout list = Layout::hindexed(std::vector<std::int64_t>(offsets.size(), 1), offsets, Layout::bytes(8));
  const std::string told = Encoder().layout(list).bytes();
  CHECK(told.size() <= 9 * 1000);
  CHECK(std::ranges::equal(Decoder(told).layout().blocks(), list.blocks()));
  for (int number = 0; number < 200; ++number) {
    std::vector<Layout> parts;
    std::vector<std::int64_t> places;
    for (std::int64_t part = below(6); part >= 0; --part) {
      Layout one = Layout::bytes(1 + below(9));
      for (std::int64_t dims = below(4); dims > 0; --dims)
        one = Layout::hvector(1 + below(7), 1, one.true_upper_bound() + below(30), one);
      for (std::int64_t again = 1 + below(3); again > 0; --again) {
        parts.push_back(one);
        places.push_back(below(100000));
      }
    }
    const std::vector<std::int64_t> ones(parts.size(), 1);
    const Layout layout = Layout::structure(ones, places, parts);
    Encoder again;
    again.layout(layout);
    const Layout read = Decoder(again.bytes()).layout();
    CHECK(std::ranges::equal(read.blocks(), layout.blocks()));
  }
}
