#pragma once

#include <cstddef>
#include <string>
#include <vector>

// Columns that UTF-8 text takes; every code point counts as one.
std::size_t columns(const std::string& text);

// Lines of at most `width` columns; a word that is longer has a line of its own.
std::vector<std::string> wrap(const std::string& paragraph, std::size_t width);
