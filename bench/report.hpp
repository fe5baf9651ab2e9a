// The results as a table for people and as JSON for programs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "measure.hpp"

namespace bench {

struct Measured {
  Case one;
  CaseResult result;
};

void print_table(const std::vector<Measured>& all);

/// What a report says of the machine by names of its own, after what it finds out by itself.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// Throws `tasuki::Error` if the file cannot be written.
void write_json(const std::string& file, const std::vector<Measured>& all, const Settings& settings, int ranks,
                const std::string& commit, const Facts& facts);

}  // namespace bench
