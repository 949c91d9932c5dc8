/* A program written to Motr's net layer alone: a message to a server and its answer, then a bulk transfer with a
 * descriptor sent in a message. It includes the headers that such programs include. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/chan.h"
#include "lib/time.h"
#include "lib/vec.h"
#include "net/lnet/lnet.h"
#include "net/net.h"

static void check(int rc, const char *what) {
  if (rc == 0) return;
  fprintf(stderr, "%s: %d: %s\n", what, rc, m0_net_last_error());
  exit(EXIT_FAILURE);
}

static void tm_event(const struct m0_net_tm_event *ev) {
  if (ev->nte_next_state == M0_NET_TM_FAILED) check(ev->nte_status, "start");
}
static const struct m0_net_tm_callbacks tm_callbacks = {.ntc_event_cb = tm_event};

/* Each buffer's end sets a flag under its machine's mutex, and signals the machine's channel. */
static void buffer_event(const struct m0_net_buffer_event *ev) {
  check(ev->nbe_status, "completion");
  ev->nbe_buffer->nb_length = ev->nbe_length;
}
static const struct m0_net_buffer_callbacks buffer_callbacks = {
    .nbc_cb = {buffer_event, buffer_event, buffer_event, buffer_event, buffer_event, buffer_event}};

struct side {
  struct m0_net_transfer_mc tm;
  struct m0_net_buffer out, in;
};

static void wait_until(struct m0_net_transfer_mc *tm, enum m0_net_tm_state state, struct m0_net_buffer *buffer) {
  struct m0_clink link;
  m0_clink_init(&link, NULL);
  m0_mutex_lock(&tm->ntm_mutex);
  m0_clink_add(&tm->ntm_chan, &link);
  while (tm->ntm_state != state || (buffer != NULL && (buffer->nb_flags & M0_NET_BUF_QUEUED) != 0) ||
         tm->ntm_callback_counter > 0) {
    m0_mutex_unlock(&tm->ntm_mutex);
    m0_chan_wait(&link);
    m0_mutex_lock(&tm->ntm_mutex);
  }
  m0_clink_del(&link);
  m0_mutex_unlock(&tm->ntm_mutex);
  m0_clink_fini(&link);
}

static void make_buffer(struct m0_net_buffer *buffer, struct m0_net_domain *domain) {
  check(m0_bufvec_alloc(&buffer->nb_buffer, 2, 4096), "memory");
  check(m0_net_buffer_register(buffer, domain), "register");
  buffer->nb_callbacks = &buffer_callbacks;
  buffer->nb_min_receive_size = 8192;
  buffer->nb_max_receive_msgs = 1;
}

static void begin(struct side *side, struct m0_net_domain *domain, const char *address) {
  side->tm.ntm_callbacks = &tm_callbacks;
  check(m0_net_tm_init(&side->tm, domain), "init");
  check(m0_net_tm_start(&side->tm, address), "start");
  wait_until(&side->tm, M0_NET_TM_STARTED, NULL);
  make_buffer(&side->out, domain);
  make_buffer(&side->in, domain);
}

static void end(struct side *side, struct m0_net_domain *domain) {
  struct m0_net_buffer *buffers[] = {&side->out, &side->in};
  check(m0_net_tm_stop(&side->tm, true), "stop");
  wait_until(&side->tm, M0_NET_TM_STOPPED, NULL);
  m0_net_tm_fini(&side->tm);
  for (int i = 0; i < 2; ++i) {
    m0_net_buffer_deregister(buffers[i], domain);
    m0_bufvec_free(&buffers[i]->nb_buffer);
  }
}

static void add(struct side *side, struct m0_net_buffer *buffer, enum m0_net_queue_type queue) {
  buffer->nb_qtype = queue;
  check(m0_net_buffer_add(buffer, &side->tm), "add");
}

static void say(struct side *from, struct side *to, const char *text) {
  struct m0_bufvec_cursor cursor;
  check(m0_net_end_point_create(&from->out.nb_ep, &from->tm, to->tm.ntm_ep->nep_addr), "end point");
  m0_bufvec_cursor_init(&cursor, &from->out.nb_buffer);
  from->out.nb_length = m0_bufvec_cursor_copyto(&cursor, (void *)text, strlen(text) + 1);
  add(to, &to->in, M0_NET_QT_MSG_RECV);
  add(from, &from->out, M0_NET_QT_MSG_SEND);
  wait_until(&to->tm, M0_NET_TM_STARTED, &to->in);
  wait_until(&from->tm, M0_NET_TM_STARTED, &from->out);
  m0_net_end_point_put(from->out.nb_ep);
  from->out.nb_ep = NULL;
  printf("%s\n", (const char *)to->in.nb_buffer.ov_buf[0]);
}

int main(void) {
  static struct m0_net_domain domain;
  static struct side client, server;
  check(m0_net_init(), "net");
  check(m0_net_domain_init(&domain, m0_net_xprt_default_get()), "domain");
  begin(&server, &domain, "0@lo:12345:39:12");
  begin(&client, &domain, "0@lo:12345:39:*");
  say(&client, &server, "ping");
  say(&server, &client, "pong");
  /* The server fetches what the client exposes. */
  strcpy(client.out.nb_buffer.ov_buf[0], "bulk");
  client.out.nb_length = 5;
  add(&client, &client.out, M0_NET_QT_PASSIVE_BULK_SEND);
  check(m0_net_desc_copy(&client.out.nb_desc, &server.in.nb_desc), "descriptor");
  add(&server, &server.in, M0_NET_QT_ACTIVE_BULK_RECV);
  wait_until(&server.tm, M0_NET_TM_STARTED, &server.in);
  wait_until(&client.tm, M0_NET_TM_STARTED, &client.out);
  if (strcmp(server.in.nb_buffer.ov_buf[0], "bulk") != 0 || server.in.nb_length != 5) check(-1, "bulk");
  m0_net_desc_free(&client.out.nb_desc);
  m0_net_desc_free(&server.in.nb_desc);
  end(&client, &domain);
  end(&server, &domain);
  m0_net_domain_fini(&domain);
  m0_net_fini();
  return EXIT_SUCCESS;
}
