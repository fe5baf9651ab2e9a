// The results as a table for people and as JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "measure.hpp"

namespace bench {

struct Measured {
  Case one;
  CaseResult result;
};

void print_table(const std::vector<Measured>& all);

/// Throws `tasuki::Error` if the file cannot be written.
void write_json(const std::string& file, const std::vector<Measured>& all, const Settings& settings, int ranks,
                const std::string& commit);

}  // namespace bench
