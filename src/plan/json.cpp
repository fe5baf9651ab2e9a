// The JSON form of a plan: one object with an array per kind of record, fields at their default left out.
#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "plan/fields.hpp"
#include "plan/share.hpp"
#include "tasuki/error.hpp"
#include "tasuki/plan.hpp"

namespace tasuki {
namespace {

using Json = nlohmann::ordered_json;

template <class Record, class Member>
Json written(const Record& record, Member member) {
  const auto& value = record.*member;
  using Value = std::remove_cvref_t<decltype(value)>;
  if constexpr (std::is_same_v<Value, CopyDims>) {
    Json dims = Json::array();
    for (std::int32_t d = 0; d < record.ndims; ++d) {
      dims.push_back(Json::array({value[d].count, value[d].src_stride, value[d].dst_stride}));
    }
    return dims;
  } else if constexpr (std::is_same_v<Value, OffsetList>) {
    Json offsets = Json::array();
    for (std::int64_t i = 0; i < value.size(); ++i) offsets.push_back(value[i]);
    return offsets;
  } else if constexpr (std::is_enum_v<Value>) {
    return std::string(to_string(value));
  } else if constexpr (std::is_same_v<Value, Name>) {
    return value.view();
  } else {
    return value;
  }
}

template <class Record>
Json object_of(const Record& record) {
  Json object = Json::object();
  detail::fields<Record>([&](std::string_view name, auto member) {
    if (detail::worth_writing(record, member)) object[std::string(name)] = written(record, member);
  });
  return object;
}

/// What becomes of bytes that are no UTF-8, which JSON cannot hold.
using Invalid = Json::error_handler_t;

std::string dumped(const Json& json, Invalid invalid) {
  return json.dump(-1, ' ', false, invalid);
}

/// `, "key": [...]` with one element a line, so that plans can be compared line by line.
template <class Elements, class Write>
std::string array_lines(std::string_view key, const Elements& elements, Write write, Invalid invalid) {
  std::string out = fmt::format(",\n\"{}\": [", key);
  for (std::size_t i = 0; i < elements.size(); ++i) out += (i ? ",\n " : "\n ") + dumped(write(elements[i]), invalid);
  return out + "]";
}

[[noreturn]] void fail(const std::string& where, const std::string& what) {
  throw Error(fmt::format("plan JSON, {}: {}", where, what));
}

template <class Integer>
Integer integer(const Json& json, const std::string& where) {
  if (!json.is_number_integer()) fail(where, fmt::format("an integer is needed, not {}", json.type_name()));
  constexpr auto least = std::numeric_limits<Integer>::min();
  constexpr auto most = std::numeric_limits<Integer>::max();
  const bool fits = json.is_number_unsigned() ? json.get<std::uint64_t>() <= static_cast<std::uint64_t>(most)
                                              : json.get<std::int64_t>() >= least && json.get<std::int64_t>() <= most;
  if (!fits)
    fail(where, fmt::format("{} does not fit in {} bits", json.dump(), std::numeric_limits<Integer>::digits + 1));
  return json.get<Integer>();
}

std::string text(const Json& json, const std::string& where) {
  if (!json.is_string()) fail(where, fmt::format("a string is needed, not {}", json.type_name()));
  return json.get<std::string>();
}

const Json& array(const Json& json, const std::string& where) {
  if (!json.is_array()) fail(where, fmt::format("an array is needed, not {}", json.type_name()));
  return json;
}

void read_dims(const Json& json, const std::string& where, StridedCopy& copy) {
  if (array(json, where).size() > kMaxDims) {
    fail(where, fmt::format("{} dimensions; at most {} are possible", json.size(), kMaxDims));
  }
  for (std::size_t d = 0; d < json.size(); ++d) {
    const std::string here = fmt::format("{}[{}]", where, d);
    if (array(json[d], here).size() != 3) fail(here, "a dimension is [count, src_stride, dst_stride]");
    copy.dims[d] = {integer<std::int64_t>(json[d][0], here), integer<std::int64_t>(json[d][1], here),
                    integer<std::int64_t>(json[d][2], here)};
  }
  copy.ndims = static_cast<std::int32_t>(json.size());
}

template <class Record, class Member>
void read_value(const Json& json, const std::string& where, Record& record, Member member) {
  auto& value = record.*member;
  using Value = std::remove_cvref_t<decltype(value)>;
  if constexpr (std::is_same_v<Value, CopyDims>) {
    read_dims(json, where, record);
  } else if constexpr (std::is_same_v<Value, OffsetList>) {
    std::vector<std::int64_t> offsets;
    for (const Json& offset : array(json, where)) offsets.push_back(integer<std::int64_t>(offset, where));
    value = OffsetList(offsets);
  } else if constexpr (detail::kIsText<Value>) {
    value = text(json, where);
  } else if constexpr (std::is_enum_v<Value>) {
    try {
      detail::parse(text(json, where), value);
    } catch (const Error& error) {
      fail(where, error.what());
    }
  } else if constexpr (std::is_same_v<Value, bool>) {
    if (!json.is_boolean()) fail(where, fmt::format("true or false is needed, not {}", json.type_name()));
    value = json.get<bool>();
  } else {
    value = integer<Value>(json, where);
  }
}

/// Reads the field `key` if `Record` has one of that name.
template <class Record>
bool read_field(const std::string& key, const Json& json, const std::string& where, Record& record) {
  bool known = false;
  detail::fields<Record>([&](std::string_view name, auto member) {
    if (name != key) return;
    read_value(json, where, record, member);
    known = true;
  });
  return known;
}

template <class Record>
void read_array(const Json& json, const std::string& where, std::vector<Record>& records) {
  records.reserve(array(json, where).size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string here = fmt::format("{}[{}]", where, i);
    if constexpr (std::is_same_v<Record, std::string>) {
      records.push_back(text(json[i], here));
    } else if constexpr (std::is_integral_v<Record>) {
      records.push_back(integer<Record>(json[i], here));
    } else {
      if (!json[i].is_object()) fail(here, fmt::format("an object is needed, not {}", json[i].type_name()));
      Record record{};
      for (const auto& [key, value] : json[i].items()) {
        const std::string field = fmt::format("{}.{}", here, key);
        if (!read_field(key, value, field, record)) fail(field, "unknown field");
      }
      records.push_back(std::move(record));
    }
  }
}

Json parsed(std::string_view json) {
  try {
    return Json::parse(json);
  } catch (const Json::parse_error& error) {
    throw Error(fmt::format("plan JSON, byte {}: {}", error.byte, error.what()));
  } catch (const Json::exception& error) {
    throw Error(fmt::format("plan JSON: {}", error.what()));  // for example, a number too large for a double
  }
}

std::string whole(const Plan& plan, Invalid invalid) {
  detail::check_writable(plan);
  const auto value = [](const auto& v) { return Json(v); };
  const Json header = object_of(plan);
  const auto object = [](const auto& record) { return object_of(record); };
  try {
    std::string out = fmt::format("{{\"format\": {}", detail::kPlanFormat);
    for (const auto& [key, field] : header.items()) out += fmt::format(",\n\"{}\": {}", key, dumped(field, invalid));
    out += array_lines("paths", plan.paths, value, invalid);
    out += array_lines("buffers", plan.buffers, object, invalid);
    out += array_lines("copies", plan.copies, object, invalid);
    out += array_lines("loops", plan.loops, object, invalid);
    out += array_lines("commands", plan.commands, object, invalid);
    out += fmt::format(",\n\"deps\": {}", dumped(Json(plan.deps), invalid));
    out += array_lines("expects", plan.expects, object, invalid);
    return out + "}\n";
  } catch (const Json::type_error& error) {
    throw Error(fmt::format("rank {}: plan '{}' cannot be written as JSON, a name is not UTF-8: {}", plan.rank,
                            plan.operation, error.what()));
  }
}

}  // namespace

std::string to_json(const Plan& plan) {
  return whole(plan, Invalid::strict);
}

std::string detail::to_shown_json(const Plan& plan) {
  return whole(plan, Invalid::replace);
}

Plan plan_from_json(std::string_view json) {
  const Json root = parsed(json);
  if (!root.is_object()) fail("top level", fmt::format("an object is needed, not {}", root.type_name()));
  if (!root.contains("format")) fail("top level", "'format' is missing");
  try {
    detail::check_format(integer<std::int64_t>(root["format"], "format"));
  } catch (const Error& error) {
    fail("format", error.what());
  }
  Plan plan;
  for (const auto& [key, value] : root.items()) {
    if (key == "format" || read_field(key, value, key, plan)) continue;
    if (key == "paths") {
      read_array(value, key, plan.paths);
    } else if (key == "buffers") {
      read_array(value, key, plan.buffers);
    } else if (key == "copies") {
      read_array(value, key, plan.copies);
    } else if (key == "loops") {
      read_array(value, key, plan.loops);
    } else if (key == "commands") {
      read_array(value, key, plan.commands);
    } else if (key == "deps") {
      read_array(value, key, plan.deps);
    } else if (key == "expects") {
      read_array(value, key, plan.expects);
    } else {
      fail(key, "unknown field");
    }
  }
  share(plan);
  return plan;
}

}  // namespace tasuki
