/* Each call of AM-2 with each of its errors, in one process without a job. */
#include <amudp.h>
#include <string.h>

#include "check.h"

static int replies, arrivals, returned, nested[6];
static char segment[100];

static void on_reply(void* token) {
  nested[0] = AM_Reply0(token, 2);
  ++replies;
}
static void on_request(void* token, int value) {
  en_t source;
  ep_t here;
  tag_t tag;
  int index = -1;
  (void)value;
  OK(AM_GetSourceEndpoint(token, &source));
  OK(AM_GetDestEndpoint(token, &here));
  OK(AM_GetMsgTag(token, &tag));
  CHECK(tag == 500);
  OK(AMX_GetSourceId(token, &index));
  CHECK(index == 3);
  CHECK_CODE(AM_GetSourceEndpoint(NULL, &source), AM_ERR_BAD_ARG);
  CHECK_CODE(AM_GetDestEndpoint(token, NULL), AM_ERR_BAD_ARG);
  CHECK_CODE(AM_GetMsgTag(token, NULL), AM_ERR_BAD_ARG);
  CHECK_CODE(AMX_GetSourceId(token, NULL), AM_ERR_BAD_ARG);
  nested[1] = AM_Request0(here, 3, 2);
  nested[2] = AM_Reply0(token, 2);
  nested[3] = AM_Reply0(token, 2);
  ++arrivals;
}
static void on_medium(void* token, void* data, size_t length, int value) {
  (void)token, (void)data;
  CHECK(length == 5 && value == 7);
  ++arrivals;
}
/* Has more parameters than the message has arguments: a reply without arguments to a handler with four. */
static void on_four(void* token, void* data, size_t length, int value) {
  (void)token, (void)data, (void)length, (void)value;
  ++replies;
}
static char large[65000], placed[65000];
static void on_large(void* token, void* data, size_t length) {
  size_t i;
  (void)token;
  CHECK(length == sizeof large);
  for (i = 0; i < length; ++i) CHECK(((char*)data)[i] == (char)(i * 7));
  ++arrivals;
}
static void on_request_four(void* token) {
  OK(AM_Reply0(token, 6));
  ++arrivals;
}
static void on_returned(int status, op_t op, void* block) {
  const amudp_returned_t* what = block;
  CHECK(status == EBADHANDLER && op == AM_REQUEST_M && what->handler == 99 && what->translation == 3);
  ++returned;
}

int main(void) {
  eb_t bundle, other;
  ep_t ep, second;
  en_t name = {0}, second_name, got;
  tag_t tag;
  uintptr_t length;
  void* base;
  int i, index, mask, count;
  handler_t handler;

  CHECK_CODE(AM_Terminate(), AM_ERR_NOT_INIT);
  CHECK_CODE(AM_AllocateBundle(AM_SEQ, &bundle), AM_ERR_NOT_INIT);
  CHECK_CODE(AM_AllocateEndpoint(NULL, &ep, &name), AM_ERR_NOT_INIT);
  CHECK_CODE(AM_FreeBundle(NULL), AM_ERR_NOT_INIT);
  CHECK_CODE(AM_FreeEndpoint(NULL), AM_ERR_NOT_INIT);
  CHECK_CODE(AM_MoveEndpoint(NULL, NULL, NULL), AM_ERR_NOT_INIT);
  CHECK_CODE(AM_SetExpectedResources(NULL, 1, 1), AM_ERR_NOT_INIT);
  CHECK_CODE(AM_SetSeg(NULL, NULL, 0), AM_ERR_NOT_INIT);
  CHECK_CODE(AM_SetTag(NULL, AM_ALL), AM_ERR_NOT_INIT);
  CHECK_CODE(AM_Map(NULL, 0, name, 1), AM_ERR_NOT_INIT);
  CHECK_CODE(AM_SetHandler(NULL, 1, on_reply), AM_ERR_NOT_INIT);
  CHECK_CODE(AM_Poll(NULL), AM_ERR_NOT_INIT);
  CHECK_CODE(AM_WaitSema(NULL), AM_ERR_NOT_INIT);
  CHECK_CODE(AM_SetEventMask(NULL, AM_NOTEMPTY), AM_ERR_NOT_INIT);
  OK(AM_Init());
  OK(AM_Init());
  OK(AM_Terminate());
  CHECK_CODE(AM_AllocateBundle(7, &bundle), AM_ERR_BAD_ARG);
  CHECK_CODE(AM_AllocateBundle(AM_SEQ, NULL), AM_ERR_BAD_ARG);
  OK(AM_AllocateBundle(AM_SEQ, &bundle));
  OK(AM_AllocateBundle(AM_PAR, &other));
  CHECK_CODE(AM_AllocateEndpoint(bundle, NULL, &name), AM_ERR_BAD_ARG);
  CHECK_CODE(AM_AllocateEndpoint(NULL, &ep, &name), AM_ERR_BAD_ARG);
  OK(AM_AllocateEndpoint(bundle, &ep, &name));
  OK(AM_AllocateEndpoint(bundle, &second, &second_name));
  CHECK(AMX_enEqual(name, name) && !AMX_enEqual(name, second_name));

  OK(AM_GetTag(ep, &tag));
  CHECK(tag == AM_NONE);
  CHECK_CODE(AM_GetTag(ep, NULL), AM_ERR_BAD_ARG);
  CHECK_CODE(AM_SetTag(NULL, 5), AM_ERR_BAD_ARG);
  OK(AM_SetTag(ep, 500));
  OK(AM_GetTag(ep, &tag));
  CHECK(tag == 500);

  OK(AM_MaxSegLength(&length));
  CHECK(length == (uintptr_t)-1);
  CHECK_CODE(AM_MaxSegLength(NULL), AM_ERR_BAD_ARG);
  OK(AM_SetSeg(ep, NULL, (uintptr_t)-1));
  CHECK_CODE(AM_SetSeg(ep, segment, (uintptr_t)-1), AM_ERR_BAD_ARG);
  OK(AM_SetSeg(ep, segment, sizeof segment));
  OK(AM_GetSeg(ep, &base, &length));
  CHECK(base == segment && length == sizeof segment);
  CHECK_CODE(AM_GetSeg(ep, NULL, &length), AM_ERR_BAD_ARG);

  OK(AM_GetNumTranslations(ep, &count));
  CHECK(count == 256);
  OK(AM_SetNumTranslations(ep, 10));
  OK(AM_GetNumTranslations(ep, &count));
  CHECK(count == 256);
  OK(AM_SetNumTranslations(ep, 300));
  CHECK_CODE(AM_SetNumTranslations(ep, 1 << 21), AM_ERR_RESOURCE);
  OK(AM_MaxNumTranslations(&count));
  CHECK(count == 1 << 20);
  OK(AM_Map(ep, 290, name, 500));
  CHECK_CODE(AM_SetNumTranslations(ep, 256), AM_ERR_RESOURCE);
  CHECK_CODE(AM_Map(ep, 290, name, 500), AM_ERR_RESOURCE);
  CHECK_CODE(AM_Map(ep, 300, name, 500), AM_ERR_BAD_ARG);
  CHECK_CODE(AM_Map(ep, -1, name, 500), AM_ERR_BAD_ARG);
  OK(AM_UnMap(ep, 290));
  CHECK_CODE(AM_UnMap(ep, 290), AM_ERR_RESOURCE);
  CHECK_CODE(AM_Unmap(ep, 300), AM_ERR_BAD_ARG);
  for (i = 0; i < 3; ++i) {
    OK(AM_MapAny(ep, &index, second_name, 1));
    CHECK(index == i);
  }
  OK(AM_Map(ep, 3, name, 400));
  CHECK_CODE(AM_MapAny(ep, NULL, name, 1), AM_ERR_BAD_ARG);
  OK(AM_GetTranslationInuse(ep, 3));
  CHECK_CODE(AM_GetTranslationInuse(ep, 4), AM_ERR_RESOURCE);
  CHECK_CODE(AM_GetTranslationInuse(ep, 300), AM_ERR_BAD_ARG);
  OK(AM_GetTranslationName(ep, 3, &got));
  CHECK(AMX_enEqual(got, name));
  CHECK_CODE(AM_GetTranslationName(ep, 4, &got), AM_ERR_RESOURCE);
  OK(AM_GetTranslationTag(ep, 3, &tag));
  CHECK(tag == 400);
  CHECK_CODE(AM_GetTranslationTag(ep, 4, &tag), AM_ERR_RESOURCE);

  CHECK_CODE(AM_SetExpectedResources(ep, 1, 0), AM_ERR_BAD_ARG);
  CHECK_CODE(AM_SetExpectedResources(ep, 1, 1025), AM_ERR_BAD_ARG);
  OK(AM_SetExpectedResources(ep, 1, 4));
  CHECK_CODE(AM_SetExpectedResources(ep, 1, 4), AM_ERR_RESOURCE);
  CHECK_CODE(AM_Map(ep, 5, name, 1), AM_ERR_RESOURCE);
  CHECK_CODE(AM_MapAny(ep, &index, name, 1), AM_ERR_RESOURCE);
  CHECK_CODE(AM_UnMap(ep, 3), AM_ERR_RESOURCE);
  OK(AMX_SetTranslationTag(ep, 3, 500));
  CHECK_CODE(AMX_SetTranslationTag(ep, 4, 500), AM_ERR_RESOURCE);

  CHECK(AM_MaxNumHandlers() == 256 && AM_MaxShort() == 16 && AM_MaxMedium() >= 65000 && AM_MaxLong() >= 65000);
  OK(AM_GetNumHandlers(ep, &count));
  OK(AM_SetNumHandlers(ep, 256));
  CHECK_CODE(AM_SetNumHandlers(ep, 255), AM_ERR_RESOURCE);
  OK(AM_SetHandler(ep, 0, on_returned));
  OK(AM_SetHandler(ep, 1, on_request));
  OK(AM_SetHandler(ep, 2, on_reply));
  OK(AM_SetHandlerAny(ep, &handler, on_medium));
  CHECK(handler == 3);
  CHECK_CODE(AM_SetHandler(ep, 9, NULL), AM_ERR_BAD_ARG);
  OK(AM_SetHandler(ep, 5, on_request_four));
  OK(AM_SetHandler(ep, 6, on_four));

  OK(AM_GetEventMask(bundle, &mask));
  CHECK(mask == AM_NOTEMPTY);
  CHECK_CODE(AM_SetEventMask(bundle, 5), AM_ERR_BAD_ARG);
  OK(AM_SetEventMask(bundle, AM_NOEVENTS));
  OK(AM_WaitSema(bundle)); /* nothing to wait for */
  OK(AM_SetEventMask(bundle, AM_NOTEMPTY));
  OK(AM_GetEventMask(bundle, &mask));
  CHECK(mask == AM_NOTEMPTY);
  CHECK_CODE(AM_Poll(NULL), AM_ERR_BAD_ARG);
  CHECK_CODE(AM_WaitSema(NULL), AM_ERR_BAD_ARG);

  OK(AM_Request1(ep, 3, 1, 7));
  OK(AM_WaitSema(bundle));
  while (replies < 1) OK(AM_Poll(bundle));
  CHECK(arrivals == 1 && nested[0] == AM_ERR_RESOURCE && nested[1] == AM_ERR_RESOURCE && nested[2] == AM_OK &&
        nested[3] == AM_ERR_RESOURCE);
  OK(AM_RequestI1(ep, 3, 3, "abcd", 5, 7));
  OK(AM_RequestXfer1(ep, 3, 90, 3, "abcd", 5, 7));
  while (arrivals < 3) OK(AM_Poll(bundle));
  CHECK(!strcmp(segment + 90, "abcd"));
  OK(AM_GetXfer1(ep, 3, 90, 3, 10, 5, 7));
  while (arrivals < 4) OK(AM_Poll(bundle));
  CHECK(!strcmp(segment + 10, "abcd"));
  OK(AM_RequestXferAsync1(ep, 3, 20, 3, "abcd", 5, 7));
  OK(AM_Request0(ep, 3, 5));
  while (replies < 2 || arrivals < 6) OK(AM_Poll(bundle));
  CHECK_CODE(AM_Request0(ep, 4, 1), AM_ERR_BAD_ARG);
  CHECK_CODE(AM_Request0(ep, 3000, 1), AM_ERR_BAD_ARG);
  CHECK_CODE(AM_Request0(NULL, 3, 1), AM_ERR_BAD_ARG);
  CHECK_CODE(AMUDP_Request(ep, 3, 1, 17), AM_ERR_BAD_ARG);
  CHECK_CODE(AM_RequestI0(ep, 3, 3, NULL, 5), AM_ERR_BAD_ARG);
  CHECK_CODE(AM_RequestI0(ep, 3, 3, segment, 65001), AM_ERR_BAD_ARG);
  CHECK_CODE(AM_Reply0(NULL, 3), AM_ERR_BAD_ARG);
  OK(AM_Request0(ep, 3, 99));
  while (returned < 1) OK(AM_Poll(bundle));
  /* The longest of AMUDP 3.17. */
  for (i = 0; i < (int)sizeof large; ++i) large[i] = (char)(i * 7);
  OK(AM_SetHandler(ep, 7, on_large));
  OK(AM_SetSeg(ep, NULL, ~(uintptr_t)0)); /* the whole address space, as GASNet has it */
  OK(AM_RequestI0(ep, 3, 7, large, sizeof large));
  OK(AM_RequestXfer0(ep, 3, (uintptr_t)placed, 7, large, sizeof large));
  while (arrivals < 8) OK(AM_Poll(bundle));

  {
    amx_stats_t stats, sum = AMX_initial_stats;
    OK(AMX_GetEndpointStatistics(ep, &stats));
    CHECK(stats.RequestsSent[amudp_Short] == 4 && stats.RequestsReceived[amudp_Medium] == 2 &&
          stats.RequestsReceived[amudp_Long] == 3 && stats.ReturnedMessages == 1);
    OK(AMX_AggregateStatistics(&sum, &stats));
    OK(AMX_AggregateStatistics(&sum, &stats));
    CHECK(sum.RequestsSent[amudp_Short] == 8);
    CHECK(strstr(AMX_DumpStatistics(NULL, &sum, 1), "requests sent") != NULL);
    CHECK(sizeof stats < AM_MaxMedium());
    OK(AMX_ResetEndpointStatistics(ep));
    OK(AMX_GetEndpointStatistics(ep, &stats));
    CHECK(stats.RequestsSent[amudp_Short] == 0);
  }

  CHECK_CODE(AM_MoveEndpoint(ep, other, bundle), AM_ERR_RESOURCE);
  CHECK_CODE(AM_MoveEndpoint(NULL, bundle, other), AM_ERR_BAD_ARG);
  OK(AM_MoveEndpoint(ep, bundle, other));
  OK(AM_GetTag(ep, &tag));
  CHECK(tag == 500);
  OK(AM_Request0(ep, 3, 5));
  while (replies < 3) OK(AM_Poll(other));
  OK(AMX_SetInterruptMode(other, 1));
  CHECK_CODE(AMX_SetInterruptMode(other, 1), AM_ERR_RESOURCE);
  OK(AMX_SetInterruptMode(other, 0));
  OK(AM_FreeEndpoint(second));
  CHECK_CODE(AM_FreeEndpoint(second), AM_ERR_BAD_ARG);
  /* Freeing a bundle frees all of its endpoints. */
  for (i = 0; i < 9; ++i) OK(AM_AllocateEndpoint(bundle, &second, &second_name));
  OK(AM_FreeBundle(bundle));
  CHECK_CODE(AM_FreeBundle(bundle), AM_ERR_BAD_ARG);
  CHECK_CODE(AM_FreeEndpoint(second), AM_ERR_BAD_ARG);
  OK(AM_Terminate());
  CHECK_CODE(AM_Terminate(), AM_ERR_NOT_INIT);
  printf("all calls as they should be\n");
  return 0;
}
