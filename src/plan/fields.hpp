// The fields of every record of a plan by name: the one list that the text form and the JSON form share.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "tasuki/plan.hpp"

namespace tasuki::detail {

/// Version of both written forms; a reader refuses any other. Version 2 has operators of reductions, and homes and
/// purposes of buffers; it has no `fence`.
inline constexpr std::int32_t kPlanFormat = 2;

/// Throws `Error` for a plan of another version, saying which one it is and what to do.
void check_format(std::int64_t format);

template <class Value>
constexpr bool kIsText = std::is_same_v<Value, std::string> || std::is_same_v<Value, Name>;

/// `fields<Record>(visit)` calls `visit(name, pointer_to_member)` for each field, in the order of writing. For a
/// `StridedCopy`, the field `dims` stands for `dims` and `ndims`: readers and writers know that type.
template <class Record, class Visit>
void fields(Visit&& visit) {
  if constexpr (std::is_same_v<Record, Plan>) {
    visit("operation", &Plan::operation);
    visit("rank", &Plan::rank);
    visit("ranks", &Plan::ranks);
  } else if constexpr (std::is_same_v<Record, Buffer>) {
    visit("name", &Buffer::name);
    visit("rank", &Buffer::rank);
    visit("role", &Buffer::role);
    visit("home", &Buffer::home);
    visit("purpose", &Buffer::purpose);
    visit("link", &Buffer::link);
    visit("writer", &Buffer::writer);
    visit("bytes", &Buffer::bytes);
    visit("ring", &Buffer::ring);
    visit("per_epoch", &Buffer::per_epoch);
    visit("copies", &Buffer::copies);
  } else if constexpr (std::is_same_v<Record, StridedCopy>) {
    visit("src_offset", &StridedCopy::src_offset);
    visit("dst_offset", &StridedCopy::dst_offset);
    visit("block", &StridedCopy::block);
    visit("dims", &StridedCopy::dims);
    visit("src_list", &StridedCopy::src_list);
    visit("dst_list", &StridedCopy::dst_list);
  } else if constexpr (std::is_same_v<Record, Loop>) {
    visit("count", &Loop::count);
  } else if constexpr (std::is_same_v<Record, Command>) {
    visit("lane", &Command::lane);
    visit("stage", &Command::stage);
    visit("verb", &Command::verb);
    visit("dtype", &Command::dtype);
    visit("op", &Command::op);
    visit("path", &Command::path);
    visit("peer", &Command::peer);
    visit("src", &Command::src);
    visit("dst", &Command::dst);
    visit("first_copy", &Command::first_copy);
    visit("copy_count", &Command::copy_count);
    visit("first_dep", &Command::first_dep);
    visit("dep_count", &Command::dep_count);
    visit("loop", &Command::loop);
    visit("tag", &Command::tag);
    visit("index", &Command::index);
    visit("lag", &Command::lag);
    visit("credit", &Command::credit);
    visit("offset", &Command::offset);
    visit("bytes", &Command::bytes);
    visit("src_step", &Command::src_step);
    visit("dst_step", &Command::dst_step);
  } else {
    static_assert(std::is_same_v<Record, Expect>);
    visit("src", &Expect::src);
    visit("dst", &Expect::dst);
    visit("first_copy", &Expect::first_copy);
    visit("copy_count", &Expect::copy_count);
    visit("dtype", &Expect::dtype);
    visit("op", &Expect::op);
    visit("in_order", &Expect::in_order);
  }
}

/// True if the field must be written because it differs from a default record's. Verbs and lanes are always written,
/// because a command without them is hard to read.
template <class Record, class Member>
bool worth_writing(const Record& record, Member member) {
  if constexpr (std::is_same_v<Record, StridedCopy> && std::is_same_v<Member, CopyDims StridedCopy::*>) {
    return record.ndims != 0;
  } else if constexpr (std::is_same_v<Member, Verb Command::*>) {
    return true;
  } else {
    if constexpr (std::is_same_v<Member, std::int32_t Command::*>) {
      if (member == &Command::lane) return true;
    }
    return !(record.*member == Record{}.*member);
  }
}

/// The inverse of `to_string`; throws `Error` naming the choices.
void parse(std::string_view name, Verb& verb);
void parse(std::string_view name, Role& role);
void parse(std::string_view name, Home& home);
void parse(std::string_view name, Purpose& purpose);
inline void parse(std::string_view name, DType& type) {
  type = dtype_from_string(name);
}
inline void parse(std::string_view name, ReduceOp& op) {
  op = reduce_op_from_string(name);
}

/// JSON for people and tools that do not run the plan: bytes of names that are no UTF-8 are replaced.
std::string to_shown_json(const Plan& plan);

/// Throws `Error` if a written form could not hold the copy (`ndims` outside 0..kMaxDims).
void check_writable(const Plan& plan);

}  // namespace tasuki::detail
