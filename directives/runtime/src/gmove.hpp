// Assignments between sections of distributed arrays.
#pragma once

#include <memory>
#include <vector>

#include "moves.hpp"
#include "objects.hpp"
#include "tasuki/machine.hpp"

namespace tasuki::xmp {

/// `to` = `from`, whose dimensions correspond as `order` says (moves.hpp), made now unless it is there. Collective over
/// the executing nodes, which must include those of both arrays.
std::shared_ptr<Work> assignment(const char* name, Array& to, const std::vector<Range>& to_section, Array& from,
                                 const std::vector<Range>& from_section, Memory where,
                                 const std::vector<int>& order = {});
/// The same for a caller that keeps it itself.
std::shared_ptr<Work> new_assignment(const char* name, Array& to, const std::vector<Range>& to_section, Array& from,
                                     const std::vector<Range>& from_section, Memory where,
                                     const std::vector<int>& order = {});

/// The transposition of two-dimensional arrays.
std::shared_ptr<Work> transposition(const char* name, Array& to, Array& from, Memory where);

}  // namespace tasuki::xmp
