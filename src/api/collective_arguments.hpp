// What the C interface reads of every collective's arguments: type, operator, options, layouts.
#pragma once

#include <string>
#include <vector>

#include "api/nouns.hpp"
#include "tasuki/broadcast.hpp"
#include "tasuki/neighbours.hpp"

namespace tasuki::api {

/// The options of all collectives but broadcast.
CollectiveOptions collective_options_from(const tasuki_collective_options* options);
/// Of a barrier.
Memory where_from(const tasuki_collective_options* options);
BroadcastOptions broadcast_options_from(const tasuki_broadcast_options* options);
OperationOptions transfer_options_from(const tasuki_transfer_options* options);

/// What is moved is moved as its bytes; what is combined must be a number.
DType collective_type_from(int type, bool combined);
Operator operator_from(int op, const tasuki_collective_options* options);

/// Throws `Failure` unless the lists to `neighbours` or its grid can be read.
Neighbours neighbours_from(const tasuki_neighbours& from);

/// The layout of a side. One that is not `used` may be null, but not freed.
Layout layout_from(tasuki_layout layout, const std::string& argument, bool used);
/// The layouts of a side's blocks; the list that is not `used` may be null.
std::vector<Layout> layouts_from(const tasuki_layout* layouts, std::int64_t count, const char* argument, bool used);

}  // namespace tasuki::api
