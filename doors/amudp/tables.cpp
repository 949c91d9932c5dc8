// An endpoint's resources, tag, segment, translations and handlers; a bundle's events.

#include <algorithm>

#include "doors/amudp/library.hpp"

using namespace fairlead::amudp;
using fairlead::Status;

namespace {

// Makes the checks that most calls share. Returns AM_OK if they pass.
int check(const char* call, ep_t endpoint) {
  if (library().init_count == 0) return fail(AM_ERR_NOT_INIT, call, "AM_Init was not called");
  return endpoint != nullptr ? AM_OK : fail(AM_ERR_BAD_ARG, call, "no endpoint");
}

int check(const char* call, eb_t bundle) {
  if (library().init_count == 0) return fail(AM_ERR_NOT_INIT, call, "AM_Init was not called");
  return bundle != nullptr ? AM_OK : fail(AM_ERR_BAD_ARG, call, "no bundle");
}

int check_index(const char* call, ep_t endpoint, int index) {
  if (const int code = check(call, endpoint); code != AM_OK) return code;
  if (index < 0 || static_cast<std::uint32_t>(index) >= endpoint->endpoint->translations())
    return fail(AM_ERR_BAD_ARG, call, "the index is out of the table");
  return AM_OK;
}

// Looks up a mapped entry. Returns AM_ERR_RESOURCE if it is free.
int look_up(const char* call, ep_t endpoint, int index, fairlead::am::Name& name, std::uint64_t& key) {
  if (const int code = check_index(call, endpoint, index); code != AM_OK) return code;
  if (endpoint->endpoint->translation(static_cast<std::uint32_t>(index), name, key) != Status::ok)
    return fail(AM_ERR_RESOURCE, call, "nothing is mapped there");
  return AM_OK;
}

}  // namespace

int AM_SetExpectedResources(ep_t endpoint, int, int outstanding_requests) {
  if (const int code = check("AM_SetExpectedResources", endpoint); code != AM_OK) return code;
  if (outstanding_requests < 1 || outstanding_requests > AMUDP_MAX_NETWORKDEPTH)
    return fail(AM_ERR_BAD_ARG, "AM_SetExpectedResources", "want 1 to 1024 outstanding requests");
  if (endpoint->has_resources) return fail(AM_ERR_RESOURCE, "AM_SetExpectedResources", "it was called before");
  if (endpoint->endpoint->set_depth(static_cast<unsigned>(outstanding_requests)) != Status::ok)
    return fail(AM_ERR_RESOURCE, "AM_SetExpectedResources", "the library cannot have so many");
  endpoint->has_resources = true;
  return AM_OK;
}

int AM_MaxSegLength(uintptr_t* length) {
  if (length == nullptr) return fail(AM_ERR_BAD_ARG, "AM_MaxSegLength", "no place for the length");
  *length = AMUDP_MAX_SEGLENGTH;
  return AM_OK;
}

int AM_SetSeg(ep_t endpoint, void* base, uintptr_t length) {
  if (const int code = check("AM_SetSeg", endpoint); code != AM_OK) return code;
  if (length > ~uintptr_t{0} - reinterpret_cast<uintptr_t>(base))
    return fail(AM_ERR_BAD_ARG, "AM_SetSeg", "it would end beyond the last address");
  endpoint->endpoint->set_segment(base, length);
  return AM_OK;
}

int AM_GetSeg(ep_t endpoint, void** base, uintptr_t* length) {
  if (const int code = check("AM_GetSeg", endpoint); code != AM_OK) return code;
  if (base == nullptr || length == nullptr) return fail(AM_ERR_BAD_ARG, "AM_GetSeg", "no place for the segment");
  const auto segment = endpoint->endpoint->segment();
  *base = segment.data();
  *length = segment.size();
  return AM_OK;
}

int AM_SetTag(ep_t endpoint, tag_t tag) {
  if (const int code = check("AM_SetTag", endpoint); code != AM_OK) return code;
  using fairlead::am::Tag;
  endpoint->tag = tag;
  endpoint->endpoint->set_tag(tag == AM_NONE ? Tag::none() : tag == AM_ALL ? Tag::all() : Tag::of(tag));
  return AM_OK;
}

int AM_GetTag(ep_t endpoint, tag_t* tag) {
  if (const int code = check("AM_GetTag", endpoint); code != AM_OK) return code;
  if (tag == nullptr) return fail(AM_ERR_BAD_ARG, "AM_GetTag", "no place for the tag");
  *tag = endpoint->tag;
  return AM_OK;
}

// Translations -------------------------------------------------------------------------------------------------------

int AM_Map(ep_t endpoint, int index, en_t name, tag_t tag) {
  if (const int code = check_index("AM_Map", endpoint, index); code != AM_OK) return code;
  if (endpoint->has_resources) return fail(AM_ERR_RESOURCE, "AM_Map", "AM_SetExpectedResources was called before");
  if (endpoint->endpoint->map(static_cast<std::uint32_t>(index), from_en(name), tag) != Status::ok)
    return fail(AM_ERR_RESOURCE, "AM_Map", "the entry is in use");
  return AM_OK;
}

int AM_MapAny(ep_t endpoint, int* index, en_t name, tag_t tag) {
  if (const int code = check("AM_MapAny", endpoint); code != AM_OK) return code;
  if (index == nullptr) return fail(AM_ERR_BAD_ARG, "AM_MapAny", "no place for the index");
  if (endpoint->has_resources) return fail(AM_ERR_RESOURCE, "AM_MapAny", "AM_SetExpectedResources was called before");
  std::uint32_t taken = 0;
  if (endpoint->endpoint->map_any(taken, from_en(name), tag) != Status::ok)
    return fail(AM_ERR_RESOURCE, "AM_MapAny", "the table is full: AM_SetNumTranslations makes it longer");
  *index = static_cast<int>(taken);
  return AM_OK;
}

int AM_UnMap(ep_t endpoint, int index) {
  if (const int code = check_index("AM_UnMap", endpoint, index); code != AM_OK) return code;
  if (endpoint->has_resources) return fail(AM_ERR_RESOURCE, "AM_UnMap", "AM_SetExpectedResources was called before");
  if (endpoint->endpoint->unmap(static_cast<std::uint32_t>(index)) != Status::ok)
    return fail(AM_ERR_RESOURCE, "AM_UnMap", "nothing is mapped there");
  return AM_OK;
}

int AM_GetTranslationInuse(ep_t endpoint, int index) {
  fairlead::am::Name name;
  std::uint64_t key = 0;
  if (const int code = check_index("AM_GetTranslationInuse", endpoint, index); code != AM_OK) return code;
  const bool is_used = endpoint->endpoint->translation(static_cast<std::uint32_t>(index), name, key) == Status::ok;
  return is_used ? AM_OK : AM_ERR_RESOURCE;  // not reported by fail(): AM_ERR_RESOURCE is an answer here
}

int AM_GetTranslationTag(ep_t endpoint, int index, tag_t* tag) {
  fairlead::am::Name name;
  std::uint64_t key = 0;
  if (tag == nullptr) return fail(AM_ERR_BAD_ARG, "AM_GetTranslationTag", "no place for the tag");
  if (const int code = look_up("AM_GetTranslationTag", endpoint, index, name, key); code != AM_OK) return code;
  *tag = key;
  return AM_OK;
}

int AM_GetTranslationName(ep_t endpoint, int index, en_t* out) {
  fairlead::am::Name name;
  std::uint64_t key = 0;
  if (out == nullptr) return fail(AM_ERR_BAD_ARG, "AM_GetTranslationName", "no place for the name");
  if (const int code = look_up("AM_GetTranslationName", endpoint, index, name, key); code != AM_OK) return code;
  *out = to_en(name);
  return AM_OK;
}

int AM_GetNumTranslations(ep_t endpoint, int* count) {
  if (const int code = check("AM_GetNumTranslations", endpoint); code != AM_OK) return code;
  if (count == nullptr) return fail(AM_ERR_BAD_ARG, "AM_GetNumTranslations", "no place for the number");
  *count = static_cast<int>(endpoint->endpoint->translations());
  return AM_OK;
}

int AM_SetNumTranslations(ep_t endpoint, int count) {
  if (const int code = check("AM_SetNumTranslations", endpoint); code != AM_OK) return code;
  if (count < 0 || static_cast<unsigned>(count) > AMUDP_MAX_NUMTRANSLATIONS)
    return fail(AM_ERR_RESOURCE, "AM_SetNumTranslations", "want at most 2^20");
  if (endpoint->endpoint->set_translations(static_cast<std::uint32_t>(count)) != Status::ok)
    return fail(AM_ERR_RESOURCE, "AM_SetNumTranslations", "an entry beyond is in use");
  return AM_OK;
}

int AMUDP_SetTranslationTag(ep_t endpoint, int index, tag_t tag) {
  if (const int code = check_index("AMX_SetTranslationTag", endpoint, index); code != AM_OK) return code;
  if (endpoint->endpoint->set_translation_key(static_cast<std::uint32_t>(index), tag) != Status::ok)
    return fail(AM_ERR_RESOURCE, "AMX_SetTranslationTag", "nothing is mapped there");
  return AM_OK;
}

// Handlers -----------------------------------------------------------------------------------------------------------

int _AM_SetHandler(ep_t endpoint, handler_t index, amudp_handler_fn_t function) {
  if (const int code = check("AM_SetHandler", endpoint); code != AM_OK) return code;
  if (function == nullptr) return fail(AM_ERR_BAD_ARG, "AM_SetHandler", "no function");
  if (index == 0) {
    endpoint->error_handler = function;
    return AM_OK;
  }
  Registered& registered = endpoint->handlers[index];
  registered = {endpoint, index, function};
  return code_of(endpoint->endpoint->set_handler(index, &call_handler, &registered));
}

int _AM_SetHandlerAny(ep_t endpoint, handler_t* index, amudp_handler_fn_t function) {
  if (const int code = check("AM_SetHandlerAny", endpoint); code != AM_OK) return code;
  if (function == nullptr || index == nullptr)
    return fail(AM_ERR_BAD_ARG, "AM_SetHandlerAny", "want a function, and where to put its index");
  const auto free =
      std::ranges::find(endpoint->handlers.begin() + 1, endpoint->handlers.end(), nullptr, &Registered::function);
  if (free == endpoint->handlers.end()) return fail(AM_ERR_RESOURCE, "AM_SetHandlerAny", "all 255 are in use");
  *index = static_cast<handler_t>(free - endpoint->handlers.begin());
  return _AM_SetHandler(endpoint, *index, function);
}

int AMUDP_SetHandlerCallbacks(ep_t endpoint, AMUDP_preHandlerCallback_t before, AMUDP_postHandlerCallback_t after) {
  if (const int code = check("AMUDP_SetHandlerCallbacks", endpoint); code != AM_OK) return code;
  endpoint->before = before;
  endpoint->after = after;
  return AM_OK;
}

// Events -------------------------------------------------------------------------------------------------------------

int AM_GetEventMask(eb_t bundle, int* mask) {
  if (const int code = check("AM_GetEventMask", bundle); code != AM_OK) return code;
  if (mask == nullptr) return fail(AM_ERR_BAD_ARG, "AM_GetEventMask", "no place for the mask");
  *mask = bundle->event_mask;
  return AM_OK;
}

int AM_SetEventMask(eb_t bundle, int mask) {
  if (const int code = check("AM_SetEventMask", bundle); code != AM_OK) return code;
  if (mask != AM_NOEVENTS && mask != AM_NOTEMPTY)
    return fail(AM_ERR_BAD_ARG, "AM_SetEventMask", "want AM_NOEVENTS or AM_NOTEMPTY");
  bundle->event_mask = mask;
  return AM_OK;
}

int AM_WaitSema(eb_t bundle) {
  if (const int code = check("AM_WaitSema", bundle); code != AM_OK) return code;
  if (bundle->event_mask == AM_NOEVENTS) return AM_OK;
  const int code = code_of(bundle->bundle->wait());
  return code == AM_OK ? AM_OK : fail(code, "AM_WaitSema", "not in a handler");
}

int AM_Poll(eb_t bundle) {
  if (const int code = check("AM_Poll", bundle); code != AM_OK) return code;
  const int code = code_of(bundle->bundle->poll());
  return code == AM_OK ? AM_OK : fail(code, "AM_Poll", "not in a handler");
}

int AMX_SetInterruptMode(eb_t bundle, int is_on) {
  if (const int code = check("AMX_SetInterruptMode", bundle); code != AM_OK) return code;
  if (!is_on) {
    bundle->bundle->stop_interrupts();
    return AM_OK;
  }
  if (bundle->bundle->start_interrupts() != Status::ok)
    return fail(AM_ERR_RESOURCE, "AMX_SetInterruptMode", "it is on already");
  bundle->is_shared = true;
  return AM_OK;
}
