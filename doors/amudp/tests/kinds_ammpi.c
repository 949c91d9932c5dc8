#define AMMPI 1
#include "kinds.c"
