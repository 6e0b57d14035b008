#include <stdio.h>

int main(int argc, char **argv) {
    switch (argc) {
    case 9:
        puts(argv[0]);
    case 1:
        puts("hello 3");
    }
    return 0;
}
