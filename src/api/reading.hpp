// What the functions that make operations read of the caller's arguments. Each throws what is wrong with one, by its
// name in C. The functions themselves are written from bindings/operations.py.
#pragma once

#include <string>
#include <vector>

#include "api/nouns.hpp"
#include "tasuki/broadcast.hpp"
#include "tasuki/exchange.hpp"
#include "tasuki/neighbours.hpp"
#include "tasuki/redistribute.hpp"
#include "tasuki/transfer.hpp"

namespace tasuki::api {

/// A tasuki_type. What is moved is moved as its bytes; what is `combined` must be a number.
DType collective_type_from(int type, bool combined);
/// A tasuki_op, or the function in the options.
Operator operator_from(int op, const tasuki_collective_options& options);
/// A tasuki_op that is none of the user's.
ReduceOp reduce_op_from(int op, const char* option);
/// Of a barrier.
Memory where_from(int where);

Neighbours neighbours_from(const tasuki_neighbours& from);
/// The layout of a side. One that is not `used` may be null, but not freed.
Layout layout_from(tasuki_layout layout, const std::string& argument, bool used);
/// The layouts of a side's blocks; the list that is not `used` may be null.
std::vector<Layout> layouts_from(const tasuki_layout* layouts, std::int64_t count, const char* argument, bool used);
/// Throws if one list is given and the other is not.
void both_or_neither(const void* a, const char* name_a, const void* b, const char* name_b);

/// The first of the fields that is one: the others' complaints can reach all ranks by its context.
const AnyField& some_field(int count, const tasuki_field* fields);
std::vector<HaloField> fields_from(int count, const tasuki_field* fields, const tasuki_width* widths);

std::vector<ExchangeField> exchange_cells_from(int count, const tasuki_exchange_field* fields);
std::vector<ExchangeEntry> exchange_entries_from(std::int64_t count, const tasuki_exchange_entry* entries, int fields);

/// An array over ranks, and what is meant of it.
ArraySide array_side_from(const tasuki_distributed& from, const char* argument);
/// Of so many dimensions.
std::vector<RedistributeArray> redistribute_arrays_from(int count, const tasuki_redistribute_array* arrays, int ndims);

/// Throws on this rank alone: without the sides' ranks nobody knows who is to hear of what else is wrong.
void check_side(const tasuki_side& side, const Context& ranks, const char* argument);
TransferSide side_from(const tasuki_side& side, int rank, const char* argument);

/// A new handle for what was made.
void put(tasuki_operation* where, const Operation& made);
void put(tasuki_operation* where, const Halo& made);

}  // namespace tasuki::api
