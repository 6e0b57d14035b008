#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

#include "wrapping.hpp"

namespace {

void print(const std::string& paragraph, std::size_t width) {
    for (const auto& line : wrap(paragraph, width)) std::cout << line << '\n';
}

int usage() {
    std::cerr << "usage: wrap [--width N] [--version] FILE\n";
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    std::size_t width = 72;
    std::string path;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        if (argument == "--version") {
            std::cout << "wrap " << WRAP_VERSION << '\n';
            return 0;
        }
        if (argument == "--width" && i + 1 < argc) {
            width = std::strtoul(argv[++i], nullptr, 10);
        } else if (path.empty()) {
            path = argument;
        } else {
            return usage();
        }
    }
    if (path.empty() || width == 0) return usage();
    std::ifstream file(path);
    if (!file) {
        std::cerr << "wrap: cannot read " << path << '\n';
        return 1;
    }
    std::string line, paragraph;
    while (std::getline(file, line)) {
        if (line.empty()) {
            print(paragraph, width);
            std::cout << '\n';
            paragraph.clear();
        } else {
            paragraph += line + ' ';
        }
    }
    print(paragraph, width);
    return 0;
}
