#include <motr_net.h>
