#include <iostream>

#include "wrapping.hpp"

namespace {

int failures = 0;

void check(bool ok, const char* what) {
    std::cout << (ok ? "ok   " : "FAIL ") << what << '\n';
    if (!ok) ++failures;
}

}  // namespace

int main() {
    using Lines = std::vector<std::string>;
    check(wrap("", 10).empty(), "nothing gives no line");
    check(wrap("a b c", 10) == Lines{"a b c"}, "a short text stays one line");
    check(wrap("aaa bbb ccc", 7) == (Lines{"aaa bbb", "ccc"}), "lines are filled to the width");
    check(wrap("extraordinary x", 5) == (Lines{"extraordinary", "x"}), "a long word has its own line");
    check(wrap("  a \t b  ", 10) == Lines{"a b"}, "blanks collapse");
    check(columns("größe") == 5, "columns are code points");
    return failures == 0 ? 0 : 1;
}
