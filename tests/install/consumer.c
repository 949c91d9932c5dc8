/* The same in C. */
#include <fairlead/net.h>

#include <stdio.h>

int main(void) {
  puts(fairlead_status_name(FAIRLEAD_CANCELED));
  return fairlead_status_errno(FAIRLEAD_OK);
}
