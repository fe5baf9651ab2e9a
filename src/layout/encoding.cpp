// Encoding: see encoding.hpp. A value is a byte for its kind, eight bytes for its length in bytes, and its bytes.
#include "layout/encoding.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "layout/sequence.hpp"

namespace tasuki {

namespace {

constexpr std::size_t kHead = 1 + sizeof(std::uint64_t);

const char* name_of(Encoded kind) {
  constexpr std::array<const char*, 6> kNames{"nothing", "a number", "numbers", "a text", "a layout", "records"};
  const auto i = static_cast<std::size_t>(kind);
  return i < kNames.size() ? kNames[i] : "something unknown";
}

}  // namespace

Encoder& Encoder::put(Encoded kind, const void* data, std::size_t size) {
  const auto length = static_cast<std::uint64_t>(size);
  std::array<char, kHead> head{};
  head[0] = static_cast<char>(kind);
  std::memcpy(head.data() + 1, &length, sizeof length);
  bytes_.append(head.data(), head.size());
  if (size > 0) bytes_.append(static_cast<const char*>(data), size);
  return *this;
}

Encoder& Encoder::layout(const Layout& value) {
  std::vector<std::int64_t> numbers;
  tasuki::append(value, numbers);
  return put(Encoded::layout, numbers.data(), numbers.size() * sizeof(std::int64_t));
}

void Decoder::fail(const char* found) const {
  throw Malformed(
      fmt::format("what another rank tells has another form ({} before byte {} of {}); all ranks must make "
                  "the same objects in the same order",
                  found, at_, bytes_.size()));
}

std::string_view Decoder::take(Encoded kind) {
  const std::size_t left = bytes_.size() - at_;
  if (left < kHead) fail(left == 0 ? "nothing" : "a part of a value");
  const auto found = static_cast<Encoded>(bytes_[at_]);
  if (found != kind) fail(name_of(found));
  std::uint64_t length = 0;
  std::memcpy(&length, bytes_.data() + at_ + 1, sizeof length);
  if (length > left - kHead) fail("a value that is not all there");
  const std::string_view data = bytes_.substr(at_ + kHead, static_cast<std::size_t>(length));
  at_ += kHead + data.size();
  return data;
}

std::int64_t Decoder::number() {
  const std::string_view data = take(Encoded::number);
  std::int64_t value = 0;
  if (data.size() != sizeof value) fail("a number of another size");
  std::memcpy(&value, data.data(), sizeof value);
  return value;
}

std::int64_t Decoder::number(std::int64_t least, std::int64_t most) {
  const std::int64_t value = number();
  if (value < least || value > most) fail("a number out of its range");
  return value;
}

namespace {

std::optional<std::vector<std::int64_t>> whole_numbers(std::string_view data) {
  if (data.size() % sizeof(std::int64_t) != 0) return {};
  std::vector<std::int64_t> values(data.size() / sizeof(std::int64_t));
  if (!values.empty()) std::memcpy(values.data(), data.data(), data.size());
  return values;
}

}  // namespace

std::vector<std::int64_t> Decoder::numbers() {
  auto values = whole_numbers(take(Encoded::numbers));
  if (!values) fail("a part of a number");
  return *std::move(values);
}

std::string Decoder::text() {
  return std::string(take(Encoded::text));
}

Layout Decoder::layout() {
  const auto values = whole_numbers(take(Encoded::layout));
  if (!values) fail("a part of a number");
  std::span<const std::int64_t> left(*values);
  auto found = take_layout(left);
  if (!found || !left.empty()) fail("numbers that are no layout");
  return *std::move(found);
}

}  // namespace tasuki
