#pragma once
#define alignof _Alignof
