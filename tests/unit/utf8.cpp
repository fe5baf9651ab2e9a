// Texts that are cut to the room that there is: no character is cut in two.
#include "support/utf8.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace tasuki;

TEST_CASE("a text is cut at the end of a character, and bytes that are no UTF-8 where they are") {
  const std::string text = "aü☃𝄞z";  // characters of 1, 2, 3, 4 and 1 bytes
  const std::string cut[] = {"", "a", "a", "aü", "aü", "aü", "aü☃", "aü☃", "aü☃", "aü☃", "aü☃𝄞", text, text};
  for (std::size_t most = 0; most < 13; ++most) CHECK(whole_characters(text, most) == cut[most]);
  const std::string bytes(9, '\xbf');
  for (std::size_t most = 0; most < 10; ++most) CHECK(whole_characters(bytes, most).size() == most);
  CHECK(whole_characters("", 0).empty());
}
