/* A message between two machines of one process, in C. */

#include <fairlead/net.h>

#include <stdio.h>
#include <stdlib.h>

static void must(fairlead_status status) {
  char why[256];
  if (status == FAIRLEAD_OK) return;
  fairlead_net_explain_last(why, sizeof(why));
  fprintf(stderr, "%s: %s\n", fairlead_status_name(status), why);
  exit(EXIT_FAILURE);
}

static void hear(const fairlead_net_buffer_event* event, void* user) {
  char text[64] = "", sender[128];
  fairlead_net_buffer_read(event->buffer, event->offset, text, event->length < 63 ? event->length : 63);
  fairlead_net_end_point_address(event->sender, sender, sizeof(sender));
  printf("%s says %s\n", sender, text);
  *(bool*)user = true;
}

static void nothing(const fairlead_net_buffer_event* event, void* user) {
  (void)event, (void)user;
}

int main(void) {
  fairlead_net_domain* domain;
  fairlead_net_machine *alice, *bob;
  fairlead_net_buffer *inbox, *outbox;
  fairlead_net_end_point *own, *there;
  char address[128];
  bool has_heard = false;

  must(fairlead_net_domain_open(NULL, &domain));
  must(fairlead_net_machine_create(domain, NULL, NULL, &alice));
  must(fairlead_net_machine_create(domain, NULL, NULL, &bob));
  must(fairlead_net_machine_deliver_synchronously(alice));             /* hear() then runs on this thread */
  must(fairlead_net_machine_start_and_wait(alice, "0@lo:20480:34:1")); /* 127.0.0.1@udp:... uses UDP */
  must(fairlead_net_machine_start_and_wait(bob, "0@lo:20480:34:*"));   /* * selects a free number */

  must(fairlead_net_buffer_allocate(domain, 4096, &inbox));
  must(fairlead_net_buffer_set_callbacks(inbox, hear, &has_heard));
  must(fairlead_net_machine_add(
      alice, inbox,
      &(fairlead_net_operation){.struct_size = sizeof(fairlead_net_operation), .queue = FAIRLEAD_NET_MESSAGE_RECEIVE}));

  must(fairlead_net_buffer_allocate(domain, 4096, &outbox));
  must(fairlead_net_buffer_set_callbacks(outbox, nothing, NULL));
  fairlead_net_buffer_write(outbox, 0, "hello, alice", 12);
  own = fairlead_net_machine_end_point(alice);
  fairlead_net_end_point_address(own, address, sizeof(address));
  must(fairlead_net_machine_create_end_point(bob, address, &there));
  must(fairlead_net_machine_add(bob, outbox,
                                &(fairlead_net_operation){.struct_size = sizeof(fairlead_net_operation),
                                                          .queue = FAIRLEAD_NET_MESSAGE_SEND,
                                                          .to = there,
                                                          .length = 12}));
  while (!has_heard) {
    must(fairlead_net_machine_wait(alice, FAIRLEAD_NET_NEVER, NULL));
    must(fairlead_net_machine_deliver_all(alice, 16, NULL));
  }

  fairlead_net_end_point_free(own);
  fairlead_net_end_point_free(there);
  fairlead_net_buffer_free(inbox);
  fairlead_net_buffer_free(outbox);
  fairlead_net_machine_free(alice);
  fairlead_net_machine_free(bob);
  fairlead_net_domain_free(domain);
  return EXIT_SUCCESS;
}
