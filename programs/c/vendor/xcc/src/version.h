#pragma once

#define VERSION  "0.1.12"
