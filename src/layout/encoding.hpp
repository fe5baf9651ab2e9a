// Encoding: the one form in which ranks describe things to each other. A message is a sequence of numbers, texts,
// layouts and plain records. Each begins with its kind and its length, so a text may hold any bytes, and a message of
// another form is noticed before anything is read past its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tasuki/error.hpp"
#include "tasuki/layout.hpp"

namespace tasuki {

/// Thrown for a message of another form than its reader expects: its sender is in another call.
class Malformed : public Error {
 public:
  using Error::Error;
};

enum class Encoded : std::uint8_t { number = 1, numbers, text, layout, records };

class Encoder {
 public:
  Encoder& number(std::int64_t value) { return put(Encoded::number, &value, sizeof value); }
  Encoder& numbers(std::span<const std::int64_t> values) {
    return put(Encoded::numbers, values.data(), values.size_bytes());
  }
  /// Any bytes.
  Encoder& text(std::string_view value) { return put(Encoded::text, value.data(), value.size()); }
  Encoder& layout(const Layout& value);
  /// Plain data, which means the same on the other rank: the ranks of a program run one build.
  template <class Record>
  Encoder& records(std::span<const Record> values) {
    static_assert(std::is_trivially_copyable_v<Record>);
    number(sizeof(Record));
    return put(Encoded::records, values.data(), values.size_bytes());
  }
  template <class Record>
  Encoder& record(const Record& value) {
    return records(std::span<const Record>(&value, 1));
  }
  /// What another encoder holds.
  Encoder& append(const Encoder& other) {
    bytes_ += other.bytes_;
    return *this;
  }

  const std::string& bytes() const& { return bytes_; }
  std::string bytes() && { return std::move(bytes_); }

 private:
  Encoder& put(Encoded kind, const void* data, std::size_t size);
  std::string bytes_;
};

/// Reads values in the order in which they were written. Every call throws `Malformed` if the next value is of another
/// kind, is not all there, or does not fit.
class Decoder {
 public:
  /// The bytes must outlive it.
  explicit Decoder(std::string_view bytes) : bytes_(bytes) {}

  std::int64_t number();
  /// One from `least` to `most`.
  std::int64_t number(std::int64_t least, std::int64_t most);
  std::vector<std::int64_t> numbers();
  std::string text();
  Layout layout();
  template <class Record>
  std::vector<Record> records() {
    static_assert(std::is_trivially_copyable_v<Record>);
    if (number() != static_cast<std::int64_t>(sizeof(Record))) fail("records of another size");
    const std::string_view data = take(Encoded::records);
    if (data.size() % sizeof(Record) != 0) fail("a part of a record");
    std::vector<Record> values(data.size() / sizeof(Record));
    if (!values.empty()) std::memcpy(static_cast<void*>(values.data()), data.data(), data.size());
    return values;
  }
  template <class Record>
  Record record() {
    const auto values = records<Record>();
    if (values.size() != 1) fail("not one record");
    return values.front();
  }
  bool empty() const { return at_ == bytes_.size(); }
  /// Throws unless everything has been read.
  void end() const {
    if (!empty()) fail("more than was expected");
  }

 private:
  std::string_view take(Encoded kind);
  [[noreturn]] void fail(const char* found) const;

  std::string_view bytes_;
  std::size_t at_ = 0;
};

/// A single record as a message, and back.
template <class Record>
std::string encoded(const Record& value) {
  return Encoder().record(value).bytes();
}
template <class Record>
Record decoded(std::string_view bytes) {
  Decoder from(bytes);
  const Record value = from.record<Record>();
  from.end();
  return value;
}

}  // namespace tasuki
