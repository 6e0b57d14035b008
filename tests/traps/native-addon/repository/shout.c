#include <node_api.h>

static napi_value shout(napi_env env, napi_callback_info info) {
    napi_value result;
    (void)info;
    napi_create_string_utf8(env, "A!", NAPI_AUTO_LENGTH, &result);
    return result;
}

NAPI_MODULE_INIT() {
    napi_value function;
    napi_create_function(env, "shout", NAPI_AUTO_LENGTH, shout, NULL, &function);
    napi_set_named_property(env, exports, "shout", function);
    return exports;
}
