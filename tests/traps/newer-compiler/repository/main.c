#include <stdio.h>
#include "words.h"

int main(void) {
    add();
    printf("hello %d\n", count);
    return 0;
}
